"""Serving the page until somebody stops it: the server around `ui.shell`, and its temporary files.

Knows Gradio's launch and signals; builds no part. Uploads lie in a folder of the data directory
only while they are read, and nothing is left of it when the server stops.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ui.cli_options import ServeOptions, is_loopback
from ui.parts import Parts

STOP_SECONDS = 10.0  # for answers that are being written: one pass over the model, at most


class PortTaken(Exception):
    """Something else listens there; the message says what to do."""


def require_port(options: ServeOptions) -> None:
    """Raise PortTaken before anything slow is done. Port 0 is always free."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((options.host, options.port))
        except OSError as error:
            raise PortTaken(
                f"Port {options.port} of {options.host} cannot be used ({error.strerror}): stop "
                "what uses it, or choose another with --port."
            ) from error


@contextmanager
def upload_folder(folder: Path) -> Iterator[None]:
    """An empty folder for Gradio's uploads, gone at the end. Enter it before Gradio is imported."""
    shutil.rmtree(folder, ignore_errors=True)  # left by a process that was killed
    folder.mkdir(mode=0o700, parents=True)
    os.environ["GRADIO_TEMP_DIR"] = str(folder)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve_until_stopped(parts: Parts, options: ServeOptions) -> None:
    """Launch the page, say where it is, and wait for SIGINT or SIGTERM."""
    from starlette.middleware import Middleware

    from ui.guard import LOOPBACK_NAMES, Guard
    from ui.http_api import routes
    from ui.shell import build_demo, launch_options

    stop = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stop.set())
    names = LOOPBACK_NAMES | {options.host} if is_loopback(options.host) else None
    demo = build_demo(parts).queue(default_concurrency_limit=16)
    _, url, _ = demo.launch(
        server_name=options.host,
        server_port=options.port or None,
        auth=options.auth,
        prevent_thread_lock=True,
        quiet=True,
        allowed_paths=[],
        app_kwargs={
            "middleware": [Middleware(Guard, names=names)],
            "routes": routes(parts, options.auth),
        },
        **launch_options(),
    )
    url = url.rstrip("/")
    print(f"{parts.model.name} decodes with {parts.model.kernel}", flush=True)
    print(f"Glassbox is ready at {url}", flush=True)
    if options.open_browser:
        webbrowser.open(url)
    stop.wait()
    print("Stopping.", flush=True)
    parts.scheduler.close(STOP_SECONDS)
    demo.close(verbose=False)
