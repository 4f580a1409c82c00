"""The errors of this package that a person should read as they are."""


class ModelError(RuntimeError):
    """A model cannot be loaded. One sentence that says why and what to do; nothing was loaded."""


class ChatTemplateError(RuntimeError):
    """The model's chat template cannot express these messages."""
