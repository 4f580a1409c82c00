"""Around the server: a taken port is said early, uploads leave nothing behind."""

import os
import socket

import pytest

from ui.cli_options import ServeOptions
from ui.serving import PortTaken, require_port, upload_folder


def test_a_taken_port_is_refused_with_what_to_do():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(PortTaken, match="--port"):
            require_port(ServeOptions(port=port))
    require_port(ServeOptions(port=port))


def test_any_free_port_will_do():
    require_port(ServeOptions(port=0))


def test_uploads_of_a_killed_server_are_gone_and_so_are_ours_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", "elsewhere")
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "True")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "0")
    folder = tmp_path / "uploads"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "file").touch()
    with upload_folder(folder):
        assert list(folder.iterdir()) == []
        assert os.environ["GRADIO_TEMP_DIR"] == str(folder)
        assert os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"
        (folder / "new").touch()
    assert not folder.exists()


def test_uploads_are_removed_when_serving_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", "elsewhere")
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "True")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "0")
    with pytest.raises(RuntimeError), upload_folder(tmp_path / "uploads"):
        raise RuntimeError
    assert not (tmp_path / "uploads").exists()
