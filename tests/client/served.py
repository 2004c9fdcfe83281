"""Servers as processes, with a place below which graphs are made: what the tests of the client
talk to."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import urllib3


class Served:
    """A server that runs. `log` are its lines so far."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.log: list[str] = []
        self.url = ""
        self._told = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._told.wait(60), "the server did not start"
        assert self.url, self.log
        ready = urllib3.Retry(40, backoff_factor=0.1, backoff_max=1, status_forcelist=[503])
        with urllib3.PoolManager(retries=ready) as pool:
            assert pool.request("GET", f"{self.url}/readyz").status == 200

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if not self.url and (match := re.match(r"Serving .* at (https?://\S+)", line)):
                self.url = match[1]
                self._told.set()
        self._told.set()

    def storage_of(self, root: str) -> str:
        """Where the graph of an address is."""
        return str(self.folder / "graphs" / root.rpartition("/")[2])

    def new_root(self) -> str:
        """The address of a graph that nobody else has."""
        return f"{self.url}/graphs/g{uuid.uuid4().hex}"


@contextmanager
def serving(folder: Path, *, workers: int = 1, more: str = "", top: str = "") -> Iterator[Served]:
    """`more` is added to the limits and what follows them, `top` to what the server is."""
    config = folder / "server.toml"
    config.write_text(
        f'[server]\nbind = "127.0.0.1:0"\nworkers = {workers}\n{top}'
        f'[server.prefix]\nroot = "{folder / "graphs"}"\ncreate = true\n'
        f"[server.limits]\nactor_rate = 100000\nactor_burst = 100000\n{more}"
    )
    command = [sys.executable, "-m", "omnigraph", "serve", "--config", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    try:
        yield Served(process, folder)
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stderr is not None
        process.stderr.close()
