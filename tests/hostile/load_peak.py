"""A process that loads one file, several times where asked, and tells how it went and what it took
at its peak.

It is a process of its own because the peak of a process never falls, because Python's own counting
of memory (tracemalloc) cannot be stopped safely while native threads run, and because it must end
well after the load has failed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.settings import Settings
from tests.hostile.hungry import Peak


def load_apart(
    root: Path, path: Path, *, warm: Path, memory: int, times: int = 1
) -> dict[str, Any]:
    """What the process said; it must have ended by itself, and well. `warm` is a small file of the
    same kind, because what a first load brings into memory is not the file's."""
    arguments = [str(root), str(path), str(warm), str(memory), str(times)]
    done = subprocess.run(
        [sys.executable, "-m", __name__, *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def main(root: str, path: str, warm: str, memory: str, times: str) -> None:
    told: dict[str, Any] = {}
    settings = Settings(load_memory=int(memory), durability="relaxed")
    with omnigraph.open(root, settings=settings) as g:
        g.load(warm, engine="local", mode="merge")
        for _ in range(int(times)):
            with Peak() as peak:
                try:
                    g.load(path, engine="local")
                except OmnigraphError as error:
                    told |= {"code": error.code, "message": error.message}
            told["peak"] = peak.bytes
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
