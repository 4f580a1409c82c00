"""`rag.reranker` with a tiny cross-encoder made here, held to the library's own scores."""

import json
import threading

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

from rag.model_folder import ModelFolderError
from rag.reranker import Reranker
from rag.retriever import Retriever
from rag.store import DocumentStore
from tests.fakes import FakeEmbedder, put
from tests.ui_fakes import passage
from ui.cli_options import options_from, parse

TEXTS = ("the lamp is lit at six", "pilot boats", "apples in september", "a reef")
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS)]


def save(folder, kind=BertForSequenceClassification, labels=1):
    BertTokenizerFast(vocab={t: n for n, t in enumerate(VOCABULARY)}).save_pretrained(folder)
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.5,
        num_labels=labels,
    )
    kind(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save(tmp_path_factory.mktemp("cross-encoder"))


def found():
    return [passage(number, text=text, heading=()) for number, text in enumerate(TEXTS)]


def test_the_order_and_the_scores_are_the_cross_encoders(folder):
    direct = CrossEncoder(str(folder), device="cpu", activation_fn=torch.nn.Identity())
    scores = direct.predict([("when is the lamp lit", text) for text in TEXTS])
    ordered = Reranker(folder).reordered("when is the lamp lit", found())
    assert [p.passage_id for p in ordered] == np.argsort(-scores, kind="stable").tolist()
    assert [p.rerank_score for p in ordered] == pytest.approx(sorted(scores, reverse=True))
    assert len({round(float(score), 4) for score in scores}) == len(TEXTS)


def test_nothing_found_stays_nothing(folder):
    assert Reranker(folder).reordered("lamp", []) == []


def test_threads_may_share_one(folder):
    reranker = Reranker(folder)
    expected = reranker.reordered("lamp", found())
    seen = []

    def run():
        seen.extend(reranker.reordered("lamp", found()) == expected for _ in range(5))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 20


def test_a_retriever_hands_on_passages_in_its_order(folder, tmp_path):
    embedder = FakeEmbedder()
    store = DocumentStore(tmp_path / "data", embedder.identity, embedder.dimension)
    for number in range(4):
        put(store, embedder, f"{number}.txt", f"the lighthouse lamp was lit {'abcd'[number]}")
    retrieval = Retriever(store, embedder, Reranker(folder)).retrieve("lighthouse lamp lit")
    scores = [p.rerank_score for p in retrieval.passages]
    assert len(scores) == 4 and scores == sorted(scores, reverse=True)
    plain = Retriever(store, embedder).retrieve("lighthouse lamp lit")
    assert {p.passage_id for p in plain.passages} == {p.passage_id for p in retrieval.passages}
    assert all(p.rerank_score is None for p in plain.passages)
    store.close()


def test_code_and_pickles_are_refused(tmp_path):
    save(tmp_path / "code")
    (tmp_path / "code" / "modeling.py").write_text("raise SystemExit")
    with pytest.raises(ModelFolderError, match="contains code"):
        Reranker(tmp_path / "code")
    save(tmp_path / "pickle")
    (tmp_path / "pickle" / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelFolderError, match="safetensors"):
        Reranker(tmp_path / "pickle")
    save(tmp_path / "mapped")
    config = tmp_path / "mapped" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"auto_map": {"AutoModel": "x"}}))
    with pytest.raises(ModelFolderError, match="auto_map"):
        Reranker(tmp_path / "mapped")


def test_what_is_no_cross_encoder_with_one_score_is_refused(tmp_path):
    with pytest.raises(ModelFolderError, match=r"config\.json"):
        Reranker(tmp_path)
    with pytest.raises(ModelFolderError, match="lacks weights"):
        Reranker(save(tmp_path / "plain", kind=BertModel))
    with pytest.raises(ModelFolderError, match="scores, not one"):
        Reranker(save(tmp_path / "three", labels=3))


def test_the_command_line_names_its_folder(tmp_path):
    args = parse(["search", "lamp", "--reranker", str(tmp_path)])
    assert options_from(args).reranker == tmp_path
    assert options_from(parse(["search", "lamp"])).reranker is None
