"""A constraint to one of a few texts, each in the tokens it usually has.

A grammar over characters would also allow " yes" as " ", "y", "es", and a model that would like to
write something else may prefer such a beginning, which says nothing about which choice it prefers.
Here the choices are compared token by token as the model has learned to write them. Knows token ids
and logits; runs no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from generation.errors import ConstraintError

if TYPE_CHECKING:
    from generation.model import LanguageModel


class ChoiceConstraint:
    """A `Constraint`: the whole answer is one of `choices`. Raises ConstraintError."""

    def __init__(self, lm: LanguageModel, choices: Sequence[str]) -> None:
        if isinstance(choices, str) or not choices or not all(isinstance(c, str) for c in choices):
            raise ConstraintError("Choices are a list of at least one text.")
        self._end_ids = sorted(lm.end_ids)
        self._left: list[list[int]] = []  # what is left of each choice the text so far begins
        before = lm.encode("a")  # some tokenizers drop a space at the very start of a text
        for choice in choices:
            ids = lm.encode(choice)
            written = lm.decode([*before, *ids])[len(lm.decode(before)) :]
            if written != choice or not lm.end_ids.isdisjoint(ids):
                raise ConstraintError(f"The choice {choice!r} cannot be written by this model.")
            self._left.append(ids)

    def allowed(self, logits: Tensor) -> Tensor:
        """Logits `(1, V)` with -inf for every token that cannot come next."""
        token_ids = {ids[0] for ids in self._left if ids}
        if self.satisfied:
            token_ids.update(self._end_ids)
        index = torch.tensor(sorted(token_ids), dtype=torch.long, device=logits.device)
        kept = torch.full_like(logits, -torch.inf)
        return kept.index_copy(-1, index, logits.index_select(-1, index))

    def accept(self, token_id: int) -> None:
        """Take the token that was chosen; ConstraintError when it was not an allowed one."""
        left = [ids[1:] for ids in self._left if ids[:1] == [token_id]]
        if not left:
            raise ConstraintError(f"Token {token_id} leads to none of the choices.")
        self._left = left

    @property
    def satisfied(self) -> bool:
        return [] in self._left

    @property
    def finished(self) -> bool:
        return not any(self._left)
