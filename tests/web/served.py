"""`omnigraph serve` as a process, as anybody runs it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import urllib3


@dataclass
class Site:
    """A server that runs. `root` is where its graph is, `tokens` those that it knows, by role."""

    url: str
    root: str
    graph: str
    tokens: Mapping[str, str]

    def at(self, view: str = "", **params: str) -> str:
        """The address of a view of the graph."""
        query = urlencode(params)
        place = f"{self.url}/#/g/{self.graph}" + (f"/{view}" if view else "")
        return f"{place}?{query}" if query else place


@contextmanager
def serving(root: str, folder: Path, *, roles: tuple[str, ...] = ()) -> Iterator[Site]:
    """Serves one graph; with roles, only to who has a token."""
    name = Path(root).name
    tokens = {role: _new_token(folder / "tokens.json", role) for role in roles}
    config = folder / "server.toml"
    config.write_text(
        '[server]\nbind = "127.0.0.1:0"\n'
        f'[server.graphs]\n{name} = "{root}"\n'
        "[server.limits]\nactor_rate = 100000\nactor_burst = 100000\n"
        + (f'[server.auth]\ntokens = "{folder / "tokens.json"}"\n' if roles else "")
    )
    command = [sys.executable, "-m", "omnigraph", "serve", "--config", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert process.stderr is not None
    rest: threading.Thread | None = None
    try:
        line = process.stderr.readline()
        assert line.startswith("Serving"), line + process.stderr.read()
        rest = threading.Thread(target=process.stderr.read, daemon=True)
        rest.start()
        url = line.split()[-1]
        wait_ready(url)
        yield Site(url, root, name, tokens)
    finally:
        process.kill()
        process.wait()
        if rest is not None:
            rest.join()
        process.stderr.close()


def wait_ready(url: str) -> None:
    retries = urllib3.Retry(80, backoff_factor=0.1, backoff_max=1, status_forcelist=[503])
    with urllib3.PoolManager(retries=retries) as pool:
        assert pool.request("GET", f"{url}/readyz").status == 200


def _new_token(file: Path, role: str) -> str:
    words = ["token", "create", role, "--role", role, "--tokens", str(file)]
    command = [sys.executable, "-m", "omnigraph", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
