"""A cross-encoder that reads the question and a passage together and puts the best in order.

Slower than comparing vectors, so it sees only the candidates that the two searches found. Knows no
index; it opens a local folder, after making sure that it is data and not code.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag.model_folder import ModelFolderError, check_data, quiet, require_weights
from rag.records import searchable_text
from rag.retrieved import RetrievedPassage

MOST_TOKENS = 512  # of question and passage together; a longer passage is cut at its end


class Reranker:
    """A CrossEncoder from a local folder. Any number of threads may use it.

    Raises ModelFolderError when the folder holds code or pickled weights, or is no cross-encoder
    with one score.
    """

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        if not (folder / "config.json").is_file():
            raise ModelFolderError(f"{folder.name} is not a cross-encoder's folder (config.json).")
        check_data(folder)
        # Imported here: it takes seconds, and only who asks for a reranker needs it.
        import torch
        from sentence_transformers import CrossEncoder

        try:
            with quiet():
                self._model = CrossEncoder(
                    str(folder),
                    device=device,
                    max_length=MOST_TOKENS,
                    local_files_only=True,
                    trust_remote_code=False,
                    # Said here, as a config file could otherwise name code to import, a kernel to
                    # fetch, or a pickle.
                    activation_fn=torch.nn.Identity(),
                    model_kwargs={"attn_implementation": "sdpa", "use_safetensors": True},
                )
        except Exception as error:  # of several libraries, about anything wrong in a file
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise ModelFolderError(f"{folder.name} cannot be loaded: {reason}") from error
        model: Any = self._model.model
        require_weights(model, folder)
        if self._model.num_labels != 1:
            raise ModelFolderError(f"{folder.name} gives {self._model.num_labels} scores, not one.")
        model.eval().requires_grad_(False)
        self._lock = threading.Lock()

    def reordered(self, query: str, passages: Sequence[RetrievedPassage]) -> list[RetrievedPassage]:
        """`passages` by falling score, which each then says; equals stay in their order.

        A score is the model's logit: the higher the better, and on no common scale.
        """
        if not passages:
            return []
        pairs = [(query, searchable_text(p.heading, p.text)) for p in passages]
        with self._lock:  # its tokenizer fails when two threads set its padding at once
            scores = self._model.predict(pairs, show_progress_bar=False)  # (N,)
        scored = [
            replace(passage, rerank_score=float(score))
            for passage, score in zip(passages, scores, strict=True)
        ]
        return sorted(scored, key=lambda p: p.rerank_score or 0.0, reverse=True)
