"""A process that does what a user could do with a graph, and tells what became of it."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import omnigraph
from omnigraph.errors import OmnigraphError
from tests.hostile.damage import READS, SETTINGS, WRITES

_MEMORY = 9 << 30
"""Who makes room for anything that a file says ends here, and not with the machine."""


def main(root: str, *names: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    uses = READS | WRITES
    told: dict[str, Any] = {}
    for name in names:
        print(name, file=sys.stderr, flush=True)
        try:
            with omnigraph.open(root, settings=SETTINGS) as g:
                uses[name](g)
            told[name] = {}
        except OmnigraphError as error:
            told[name] = {"code": error.code, "message": error.message}
        except BaseException as error:  # noqa: BLE001  a panic of Rust is no Exception
            told[name] = {"raw": repr(error)}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
