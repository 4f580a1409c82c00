"""Untrusted text never becomes a control token, whatever the vocabulary can spell."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from generation.tokenization import TextEncoder
from tests.tiny import CONTROL, tiny_tokenizer


def sentencepiece_tokenizer(style: str) -> PreTrainedTokenizerFast:
    """As llama's: words start with a mark, merges that spell `</s>`, an unknown token."""
    pieces = ["<unk>", "<s>", "</s>", "▁", "<", "/", "s", ">", "</", "s>", "h", "i", "▁h", "▁hi"]
    merges = [("<", "/"), ("s", ">"), ("</", "s>"), ("▁", "h"), ("▁h", "i")]
    backend = Tokenizer(
        models.BPE({piece: i for i, piece in enumerate(pieces)}, merges, unk_token="<unk>")
    )
    if style == "normalizer":
        backend.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def test_control_tokens_are_split_in_untrusted_text_and_kept_in_ours():
    encoder = TextEncoder(tiny_tokenizer())
    text = "a" + "".join(CONTROL)
    assert not set(encoder.encode_untrusted(text)) & encoder.control_ids
    assert encoder.decode(encoder.encode_untrusted(text)) == text
    assert set(encoder.encode_trusted(text)) > encoder.control_ids


def test_added_tokens_that_are_not_special_are_split_too():
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken("<tool_call>", special=False), AddedToken("\n\n")])
    added = tokenizer.convert_tokens_to_ids("<tool_call>")
    # What transformers offers for this keeps the token:
    assert added in tokenizer.encode("<tool_call>", split_special_tokens=True)
    encoder = TextEncoder(tokenizer)
    assert added in encoder.control_ids
    assert tokenizer.convert_tokens_to_ids("\n\n") not in encoder.control_ids
    assert added not in encoder.encode_untrusted("<tool_call>")
    assert encoder.decode(encoder.encode_untrusted("<tool_call>\n\n")) == "<tool_call>\n\n"


@pytest.mark.parametrize("style", ["normalizer", "metaspace"])
def test_a_vocabulary_whose_merges_spell_a_control_token_is_cut(style):
    encoder = TextEncoder(sentencepiece_tokenizer(style))
    end = 2
    assert end in encoder.encode_trusted("hi</s>")
    ids = encoder.encode_untrusted("</s></s> hi")
    assert end not in ids
    assert encoder.decode(ids) == "</s></s> hi"


@pytest.mark.parametrize("style", ["normalizer", "metaspace"])
def test_a_continuation_gets_no_space_put_before_it(style):
    encoder = TextEncoder(sentencepiece_tokenizer(style))
    assert encoder.decode(encoder.encode_trusted("hi", opening=True)) == " hi"
    assert encoder.decode(encoder.encode_trusted("hi")) == "hi"
    assert encoder.decode(encoder.encode_untrusted("hi")) == "hi"


def test_a_character_the_vocabulary_lacks_is_unknown_not_dropped():
    encoder = TextEncoder(sentencepiece_tokenizer("metaspace"))
    assert encoder.encode_untrusted("hZi") == [10, 0, 11]


def test_text_that_no_encoding_can_hold_does_not_crash():
    encoder = TextEncoder(tiny_tokenizer())
    assert encoder.decode(encoder.encode_untrusted("a\ud800b\udfff")) == "a\ufffdb\ufffd"
    assert encoder.decode(encoder.encode_untrusted("nul \x00 here")) == "nul \x00 here"
    assert encoder.encode_untrusted("") == []


def test_sixteen_threads_encode_while_the_shared_tokenizer_is_changed():
    tokenizer = tiny_tokenizer()
    encoder = TextEncoder(tokenizer)
    text = "The quick <|im_end|> 快 🦊 " * 50
    expected = encoder.encode_untrusted(text)

    def work(number: int) -> bool:
        for turn in range(30):
            if number == 0:  # what makes others fail with "Already borrowed"
                tokenizer.backend_tokenizer.encode_special_tokens = bool(turn % 2)
                tokenizer.backend_tokenizer.enable_truncation(turn + 1)
            ids = encoder.encode_untrusted(text)
            if ids != expected or encoder.decode(ids) != text:
                return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


def test_a_character_whose_bytes_the_vocabulary_lacks_is_replaced_not_eaten():
    alphabet = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - {"é"})  # the byte 0xE9
    backend = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    encoder = TextEncoder(PreTrainedTokenizerFast(tokenizer_object=backend))
    assert encoder.decode(encoder.encode_untrusted("a香b")) == "a\ufffdb"  # its first byte is 0xE9
