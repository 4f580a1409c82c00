"""rag.readers.encodings: bytes to text when nobody says which encoding they are in."""

import random

import pytest

from rag.readers.blocks import DocumentError
from rag.readers.encodings import decode

SIMPLIFIED = {
    "two characters": "你好",
    "a phrase": "语言模型",
    "a question": "什么是困惑度？",
    "mixed": "KV cache 缓存保存每一层的键和值，so decoding stays fast.",
    "late": "plain English first. " * 20_000 + "最后才有中文。",
    "long": "自回归模型每一步只预测下一个词元，然后把它接到已有的文本后面。" * 500,
}
TRADITIONAL = {
    "two characters": "你好",
    "a phrase": "語言模型",
    "a question": "什麼是困惑度？",
    "mixed": "KV cache 快取保存每一層的鍵和值，so decoding stays fast.",
    "late": "plain English first. " * 20_000 + "最後才有中文。",
    "long": "自迴歸模型每一步只預測下一個詞，然後把它接到已有的文字後面。" * 500,
}


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("kind", SIMPLIFIED)
def test_simplified_chinese_is_read_in_every_encoding_it_comes_in(kind: str, encoding: str) -> None:
    assert decode(SIMPLIFIED[kind].encode(encoding)) == SIMPLIFIED[kind]


@pytest.mark.parametrize("encoding", ["big5", "utf-8", "utf-16"])
@pytest.mark.parametrize("kind", TRADITIONAL)
def test_traditional_chinese_is_read_in_every_encoding_it_comes_in(
    kind: str, encoding: str
) -> None:
    assert decode(TRADITIONAL[kind].encode(encoding)) == TRADITIONAL[kind]


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"\xff\xfe\0\0", "utf-32-le"),
        (b"\0\0\xfe\xff", "utf-32-be"),
        (b"\xef\xbb\xbf", "utf-8"),
    ],
)
def test_a_byte_order_mark_decides_and_is_no_text(mark: bytes, encoding: str) -> None:
    assert decode(mark + "中文 and English".encode(encoding)) == "中文 and English"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Le café était déjà fermé.", "cp1252"),
        ("naïve “quotes” – and dashes", "cp1252"),
        ("Привет, как дела? Это простой текст на русском языке.", "cp1251"),
        ("これは日本語のテキストです。とても簡単です。", "shift_jis"),
        ("이것은 한국어 텍스트입니다. 안녕하세요 여러분.", "euc_kr"),
    ],
)
def test_other_languages_are_not_taken_for_chinese(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_a_declared_encoding_is_believed_only_if_it_fits() -> None:
    assert decode("喆".encode("gbk"), declared="GB2312") == "喆"
    assert decode("你好，世界".encode("gbk"), declared="big5-nonsense") == "你好，世界"
    assert decode("你好，世界".encode(), declared="gbk") == "你好，世界"
    assert decode("你好，世界".encode("gbk"), declared="base64") == "你好，世界"


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "utf-16"])
def test_a_text_cut_in_the_middle_of_a_character_is_read_with_a_warning(encoding: str) -> None:
    warnings: list[str] = []
    text = decode(("中文内容" * 1000).encode(encoding)[:-1], warn=warnings.append)
    assert text.startswith("中文内容中文内容")
    assert len(warnings) == 1


def test_a_real_replacement_character_is_text_like_any_other() -> None:
    warnings: list[str] = []
    assert decode("好\ufffd".encode(), warn=warnings.append) == "好\ufffd"
    assert not warnings


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("length", [200, 20_000])
def test_random_bytes_are_refused(seed: int, length: int) -> None:
    with pytest.raises(DocumentError) as error:
        decode(random.Random(seed).randbytes(length))
    assert error.value.code == "binary"


def test_a_few_nul_bytes_do_not_make_a_text_binary() -> None:
    assert decode(b"one\0two\0three") == "one\0two\0three"
