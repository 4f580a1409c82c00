"""The errors of this package whose message is written for the person who sees it."""


class WeightsError(RuntimeError):
    """A model file cannot be had. Says why and what to do; nothing half-made is left."""


class ModelError(RuntimeError):
    """A model cannot be loaded. Says why and what to do, before its weights are read."""


class ChatTemplateError(RuntimeError):
    """The model's chat template cannot express these messages."""


class ConstraintError(ValueError):
    """A form that an answer cannot have. Said in one sentence, and before the model runs."""
