"""What `glassbox add` adds, and under which names."""

from pathlib import Path

import pytest

from ui.cli_files import files_to_add


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name in ("notes/README.md", "notes/deep/README.md", "other/notes/README.md", "a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*paths: str) -> list[str]:
    return [name for _, name in files_to_add([Path(path) for path in paths])]


def test_a_file_that_is_named_keeps_its_name(folder):
    assert names("a.md", str(folder / "notes/README.md")) == ["a.md", "README.md"]


def test_files_below_a_folder_are_named_by_it_and_the_way(folder):
    assert names("notes") == ["notes/README.md", "notes/deep/README.md"]
    assert names("other") == ["other/notes/README.md"]


def test_folders_and_files_that_end_alike_are_named_by_more_of_their_way(folder):
    top = folder.name
    assert names("notes/deep/..", "other/notes") == [
        *(f"{top}/notes/README.md", f"{top}/notes/deep/README.md", "other/notes/README.md")
    ]
    assert names("notes/README.md", "notes/deep/README.md") == [
        *("notes/README.md", "deep/README.md")
    ]


def test_no_two_files_get_one_name_and_none_is_added_twice(folder):
    found = names("notes", "other", ".", "notes/", "a.md")
    assert len(found) == len(set(found)) == 4


def test_the_folder_one_stands_in_has_its_name(folder):
    assert f"{folder.name}/a.md" in names(".")
