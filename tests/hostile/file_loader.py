"""A process that loads file after file with the program, and writes down what became of each.

A crash takes the process, and the last line of what it wrote names the file that did it."""

from __future__ import annotations

import json
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

from omnigraph.runtime import SystemRuntime
from tests.cli.world import Program

_MEMORY = 12 << 30


def main(root: str, listed: str, written: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    program = Program(clock=SystemRuntime(), environment={"OMNIGRAPH_DURABILITY": "relaxed"})
    with Path(written).open("a") as out:
        for path in json.loads(Path(listed).read_text()):

            def tell(path: str = path, **told: Any) -> None:
                out.write(json.dumps({"path": path} | told) + "\n")
                out.flush()

            tell(begun=True)
            try:
                ran = program(["load", path, "--mode", "merge", "--root", root])
            except BaseException:  # noqa: BLE001  a panic of Rust is no Exception
                tell(trace=traceback.format_exc())
            else:
                tell(code=ran.code, err=ran.err, out=ran.out)


if __name__ == "__main__":
    main(*sys.argv[1:])
