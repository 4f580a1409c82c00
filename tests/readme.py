"""The generated parts of README.md and CONTRIBUTING.md. `python -m tests.readme` rewrites them.

They are drawn from the code itself, and tests/test_readme.py fails when they are out of date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

from generation.catalogue import CATALOGUE

ROOT = Path(__file__).parent.parent
PACKAGES = ("generation", "rag", "rag/readers", "ui")


def models() -> str:
    """The catalogue as a table."""
    rows = ["| name | what it is | licence | size |", "| --- | --- | --- | ---: |"]
    rows += [
        f"| `{name}` | {entry.title} | {entry.licence} | {entry.size / 1e6:.0f} MB |"
        for name, entry in CATALOGUE.items()
    ]
    return "\n".join(rows)


def tree() -> str:
    """Every module with the first sentence of its docstring."""
    lines = []
    for package in PACKAGES:
        paths = [p for p in sorted((ROOT / package).glob("*.py")) if p.name != "__init__.py"]
        width = max(len(p.name) for p in paths)
        lines += [f"**{package}/**", "", "```text"]
        lines += [f"{p.name:{width}}  {first_sentence(p)}" for p in paths]
        lines += ["```", ""]
    return "\n".join(lines).rstrip()


def first_sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[.?])\s", paragraph, maxsplit=1)[0].rstrip(".")


BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "models": ("README.md", models),
    "tree": ("CONTRIBUTING.md", tree),
}


def with_block(text: str, name: str, content: str) -> str:
    """`text` with what stands between the markers of block `name` replaced."""
    pattern = re.compile(rf"(<!-- {name}\b[^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"There is no block {name}.")
    return pattern.sub(lambda m: f"{m[1]}\n{content}\n\n{m[2]}", text)


def main() -> None:
    for name, (file, draw) in BLOCKS.items():
        path = ROOT / file
        path.write_text(with_block(path.read_text("utf-8"), name, draw()), encoding="utf-8")


if __name__ == "__main__":
    main()
