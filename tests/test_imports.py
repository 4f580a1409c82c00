"""The import rules of the design, read from the source with `ast`: no module is imported here."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("generation", "rag", "ui")
SOURCES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))
FORBIDDEN = {
    "generation": {"rag", "ui", "app", "gradio", "faiss", "sentence_transformers"},
    "rag": {"generation", "ui", "app", "gradio"},
    "ui": {"app", "faiss"},
}


def imported(path: Path) -> set[str]:
    """Full names of everything imported anywhere in a file, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module)
    return names


def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(path)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_what_its_package_may(path):
    package = path.relative_to(ROOT).parts[0]
    assert not roots(path) & FORBIDDEN[package]


def test_only_the_vectors_and_their_index_import_faiss():
    users = {p.relative_to(ROOT).as_posix() for p in SOURCES if "faiss" in roots(p)}
    assert users <= {"rag/vector_rows.py", "rag/approximate_index.py"}


def test_only_milvus_modules_import_pymilvus_and_only_when_it_is_used():
    """It is an extra: `glassbox` runs without it."""
    users = {p.relative_to(ROOT).as_posix() for p in SOURCES if "pymilvus" in roots(p)}
    assert users == {"rag/milvus_connection.py", "rag/milvus_index.py"}
    code = "import sys, app, rag.store, rag.retriever; assert 'pymilvus' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_only_app_imports_ui_from_outside():
    others = [p for p in ROOT.glob("*.py") if p.name != "app.py"]
    others += [p for p in SOURCES if p.relative_to(ROOT).parts[0] != "ui"]
    assert not [p for p in others if "ui" in roots(p)]


def test_nothing_imports_app():
    assert not [p for p in SOURCES if "app" in roots(p)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_opens_by_saying_what_it_is(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_does_no_work_when_imported(path):
    """Nothing is called for its effect at import: no bare call, no loop, no `with`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Expr):
            assert isinstance(node.value, ast.Constant), f"line {node.lineno}"
        assert not isinstance(node, ast.For | ast.While | ast.With), f"line {node.lineno}"


def test_app_stays_a_composition_root():
    app = ROOT / "app.py"
    assert len(app.read_text(encoding="utf-8").splitlines()) < 200
