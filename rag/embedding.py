"""Text to vectors: one local SentenceTransformer behind a small, thread-safe interface.

Knows tokens, batches and numerical precision. It does not know documents, indexes, or where weights
come from: it is handed a path.

It tokenizes by itself instead of calling `SentenceTransformer.encode`, for two reasons: `encode`
cuts what is too long without a word, and it changes the tokenizer's settings at each call, which
fails ("Already borrowed") when several threads do it at once.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag.device import choose_device, choose_precision
from rag.e5 import RECIPE, load_e5
from rag.model_folder import ModelFolderError, fingerprint, open_folder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

Progress = Callable[[str, int, int], None]  # (label, done, total)

# Tokens of one forward pass, padding included: on a CPU, and on a GPU, which wants more at once.
BATCH_TOKENS = (1024, 32768)
_SURROGATE = re.compile("[\ud800-\udfff]")


class EmbeddingError(RuntimeError):
    """No usable vector came out. The message is for the person."""


class EmbeddingStopped(Exception):
    """`should_stop` said so; nothing was returned."""


@dataclass(frozen=True)
class _Window:
    """A text, or a part of a long one, as the model takes it at once."""

    row: int  # of the text in the result
    ids: list[int]
    content: int  # how many ids are the text's own


class Embedder:
    """Embeds passages and queries. Any number of threads may do so at once.

    `path` is an `E5S1` file (unpacked once into `cache_dir`) or a SentenceTransformer folder.
    `precision` is "fp32", "bf16", or "auto": bf16 where the hardware multiplies it fast. In bf16
    vectors keep a cosine of 0.9999 to those in fp32, and recall stays the same.

    A text longer than the model's window is never cut: it is embedded in several windows and gets
    their mean, weighted by tokens. `max_tokens` says how long a passage can be and stay in one.

    A vector does not depend on what else is in the batch, except through the order in which the
    hardware adds: about 1e-7 in each component in fp32, 1e-3 in bf16.

    Raises E5Error or ModelFolderError if the weights cannot be used.
    """

    def __init__(
        self, path: Path, *, cache_dir: Path, device: str = "auto", precision: str = "auto"
    ) -> None:
        # torch is imported inside functions: whoever only names an Embedder need not wait for it.
        import torch

        self.device = torch.device(choose_device(device))
        self.precision = choose_precision(precision, self.device)
        dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
        if path.is_dir():
            self._model = open_folder(path, str(self.device), dtype)
        else:
            self._model = load_e5(path, cache_dir, device=str(self.device), dtype=dtype)
        self._batch_tokens = BATCH_TOKENS[self.device.type == "cuda"]
        self._threads = torch.get_num_threads()

        self._tokenizer = _frozen_tokenizer(self._model)
        self._pad_id = int(self._model.tokenizer.pad_token_id or 0)
        self._unknown_id = self._model.tokenizer.unk_token_id
        self._before, self._after = self._special_ids()

        prompts = self._model.prompts
        self._query_prefix = prompts.get("query") or ""
        self._passage_prefix = prompts.get("passage") or prompts.get("document") or ""
        self.dimension = int(self._model.get_embedding_dimension() or 0)
        self._window = int(self._model.max_seq_length or 512) - len(self._before + self._after)
        self.max_tokens = self._window - self._prefix_length(self._passage_prefix)

        origin = (fingerprint(path), RECIPE, self._query_prefix, self._passage_prefix, self._window)
        digest = hashlib.sha256(repr(origin).encode()).hexdigest()[:16]
        self.identity = f"{digest}-{self.dimension}-{self.precision}"

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Character spans `(start, end)` of the tokens of `text`, in order.

        Every character that is not white space lies in a span, so that text cut between two spans
        loses nothing. A span neither begins nor ends with white space. It is empty for a token that
        is only the space before the next, and, where one character makes several tokens, for all
        but the last. Characters that the vocabulary lacks count one token each, though the model
        sees a run of them as one.
        """
        encoding = self._tokenizer.encode(_clean(text), add_special_tokens=False)
        starts: list[int] = []
        for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            # Composing can swap two marks of one letter, and so their positions.
            start = max(start, starts[-1]) if starts else 0
            end = end if token_id == self._unknown_id else start
            starts.extend(range(start, max(start + 1, end)))
        if text and not starts:
            starts = [0]  # nothing but characters that the tokenizer drops
        spans = []
        for start, end in pairwise([*starts, len(text)]):
            while start < end and text[start].isspace():
                start += 1
            while start < end and text[end - 1].isspace():
                end -= 1
            spans.append((start, end))
        return spans

    def embed_passages(
        self,
        texts: Sequence[str],
        progress: Progress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> np.ndarray:
        """Vectors (N, D) float32 of length 1, in the order of `texts`.

        Raises EmbeddingStopped if `should_stop` returns true between two batches, and
        EmbeddingError if the model gives a vector that is not finite.
        """
        return self._embed(texts, self._passage_prefix, progress, should_stop)

    def embed_query(self, text: str) -> np.ndarray:
        """Vector (D,) float32 of length 1. Raises EmbeddingError as `embed_passages` does."""
        return self._embed([text], self._query_prefix)[0]

    def _embed(
        self,
        texts: Sequence[str],
        prefix: str,
        progress: Progress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> np.ndarray:
        windows = list(self._windows(texts, prefix))
        # Longest first: texts of like length share a batch, and the largest batch comes first, so
        # that a lack of memory shows at once.
        windows.sort(key=lambda window: len(window.ids), reverse=True)
        sums = np.zeros((len(texts), self.dimension), np.float32)  # (N, D)
        done = 0
        for batch in _batches(windows, self._batch_tokens):
            if should_stop is not None and should_stop():
                raise EmbeddingStopped
            vectors = self._forward([window.ids for window in batch])  # (B, D)
            weights = np.array([[window.content] for window in batch], np.float32)  # (B, 1)
            np.add.at(sums, [window.row for window in batch], vectors * weights)
            done += len(batch)
            if progress is not None:
                progress("embed", done, len(windows))
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)  # (N, 1)
        if not (np.isfinite(sums).all() and (lengths > 0).all()):
            raise EmbeddingError("The embedding model returned a vector that is not finite.")
        return sums / lengths

    def _windows(self, texts: Sequence[str], prefix: str) -> Iterator[_Window]:
        """Each text as one window of token ids, or several, each with the prefix, if it is long.

        All but the last are full. Equal shares would seem fairer, but the mean of equals lies near
        the middle of all texts, and then near every question: on XQuAD three such paragraphs among
        240 took 2 % of the first places of Chinese questions.
        """
        head = self._prefix_length(prefix)
        room = self._window - head
        for row, ids in enumerate(self._encode_ids([prefix + text for text in texts])):
            body = ids[head:]
            for start in range(0, max(1, len(body)), room):
                part = body[start : start + room]
                framed = [*self._before, *ids[:head], *part, *self._after]
                yield _Window(row, framed, max(1, len(part)))

    def _forward(self, batch: list[list[int]]) -> np.ndarray:
        """Token ids of B texts, of any lengths, to vectors (B, D) of length 1."""
        import torch

        torch.set_num_threads(self._threads)  # a new thread has what was set last, by anybody
        longest = max(map(len, batch))
        padded = [ids + [self._pad_id] * (longest - len(ids)) for ids in batch]
        mask = [[1] * len(ids) + [0] * (longest - len(ids)) for ids in batch]
        features = {
            "input_ids": torch.tensor(padded, device=self.device),  # (B, T)
            "attention_mask": torch.tensor(mask, device=self.device),  # (B, T)
        }
        with torch.inference_mode():
            return self._model(features)["sentence_embedding"].float().cpu().numpy()  # (B, D)

    def _encode_ids(self, texts: list[str]) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch_fast(
            [_clean(text) for text in texts], add_special_tokens=False
        )
        return [encoding.ids for encoding in encodings]

    def _prefix_length(self, prefix: str) -> int:
        """Its tokens, without the space at its end, which belongs to the first word after it."""
        return len(self._encode_ids([prefix.rstrip()])[0])

    def _special_ids(self) -> tuple[list[int], list[int]]:
        """The ids that this model wants before and after every text, such as <s> and </s>."""
        bare = self._tokenizer.encode("a", add_special_tokens=False).ids
        framed = self._tokenizer.encode("a", add_special_tokens=True).ids
        start = framed.index(bare[0])
        return framed[:start], framed[start + len(bare) :]


def _batches(windows: list[_Window], batch_tokens: int) -> Iterator[list[_Window]]:
    """Windows, longest first, in runs of at most `batch_tokens` tokens (or one longer window)."""
    start = 0
    while start < len(windows):
        count = max(1, batch_tokens // len(windows[start].ids))
        yield windows[start : start + count]
        start += count


def _frozen_tokenizer(model: "SentenceTransformer") -> "Tokenizer":
    """The model's tokenizer as it stays from here on, so that threads can share it."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise ModelFolderError("The embedding model has no tokenizer.json, which is needed.")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
    return tokenizer


def _clean(text: str) -> str:
    """Half surrogate pairs, which no tokenizer takes, become U+FFFD. Positions stay as they are."""
    return _SURROGATE.sub("\ufffd", text)
