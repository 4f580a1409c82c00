"""Keys and values of the tokens read so far, in buffers allocated once.

A step of the loop writes one position and reads a view of the rest: nothing is concatenated and
nothing is copied, where transformers' `DynamicCache` copies the whole cache in every layer for
every token. Knows tensors and the cache interface of transformers; knows no tokens and no models.

Sliding-window models are served too: all positions are kept and the attention mask, which
transformers builds from the model's config, hides those outside the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}


class PreallocatedLayer(CacheLayerMixin):
    """One layer's keys and values, `(B, K, capacity, D)`, of which the first `length` are live."""

    is_sliding = False
    is_croppable = True
    keys: Tensor  # None until is_initialized
    values: Tensor

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate for states shaped `(B, K, T, D)`; keys and values may differ in D."""
        self.keys = _empty_like(key_states, self.capacity)
        self.values = _empty_like(value_states, self.capacity)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Append states `(B, K, T, D)`; return views of everything so far, `(B, K, length, D)`."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[-2]
        self.reserve(end)
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def reserve(self, needed: int) -> None:
        """Make room for `needed` positions in all."""
        if needed <= self.capacity:
            return
        # Doubling keeps the copies rare when a caller could not say how long the text will be.
        self.capacity = max(needed, 2 * self.capacity)
        for name in ("keys", "values"):
            old = getattr(self, name)
            new = _empty_like(old, self.capacity)
            new[:, :, : self.length] = old[:, :, : self.length]
            setattr(self, name, new)

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1  # grows when it must

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def reset(self) -> None:
        self.length = 0

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last `abs(tokens_to_remove)` positions; the number is negative or 0."""
        self.length = max(0, self.length - abs(tokens_to_remove))

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Row i becomes what row `beam_idx[i]` was; the number of rows may change."""
        if not self.is_initialized:
            return
        for name in ("keys", "values"):
            old = getattr(self, name)
            rows = beam_idx.to(old.device)
            new = old.new_empty((len(rows), *old.shape[1:]))
            new[:, :, : self.length] = old[:, :, : self.length].index_select(0, rows)
            setattr(self, name, new)

    def copy(self) -> PreallocatedLayer:
        """An independent layer with the same live positions."""
        twin = PreallocatedLayer(self.capacity)
        if self.is_initialized:
            twin.lazy_initialization(self.keys, self.values)
            twin.keys[:, :, : self.length] = self.keys[:, :, : self.length]
            twin.values[:, :, : self.length] = self.values[:, :, : self.length]
            twin.length = self.length
        return twin

    @property
    def nbytes(self) -> int:
        return (self.keys.nbytes + self.values.nbytes) if self.is_initialized else 0


class KVCache(Cache):
    """The cache of a whole model: one `PreallocatedLayer` per transformer layer.

    `capacity` is in tokens: the prompt plus the most that will be generated. Memory is taken on the
    first forward pass, on the device and in the dtype of the model's own keys.
    """

    layers: list[PreallocatedLayer]  # type: ignore[assignment]  # the base allows other kinds

    def __init__(self, layers: list[PreallocatedLayer]) -> None:
        super().__init__(layers=list(layers))

    @classmethod
    def for_config(cls, config: PreTrainedConfig, capacity: int) -> KVCache:
        """A cache for a model with this config.

        Raises ValueError for models some of whose layers are not attention (Mamba and the like):
        their state cannot be cropped, so prefix reuse and branches would be wrong.
        """
        config = config.get_text_config(decoder=True)
        kinds = set(getattr(config, "layer_types", None) or ()) - ATTENTION_LAYERS
        if kinds:
            raise ValueError(
                f"The model has {', '.join(sorted(kinds))} layers, which keep no keys and values. "
                "Choose a model whose layers are all attention."
            )
        return cls([PreallocatedLayer(capacity) for _ in range(config.num_hidden_layers)])

    @property
    def length(self) -> int:
        """Tokens held."""
        return self.layers[0].length

    @property
    def nbytes(self) -> int:
        """Bytes allocated, which is at least what is live."""
        return sum(layer.nbytes for layer in self.layers)

    def fork(self) -> KVCache:
        """An independent copy: what is appended to one does not show in the other."""
        return KVCache([layer.copy() for layer in self.layers])

    def reorder(self, rows: Tensor) -> None:
        """Select batch rows (with repeats): beams `(k,)` after pruning, or one row made k."""
        for layer in self.layers:
            layer.reorder_cache(rows)


def _empty_like(states: Tensor, capacity: int) -> Tensor:
    rows, heads, _, dimension = states.shape
    return states.new_empty((rows, heads, capacity, dimension))  # (B, K, capacity, D)
