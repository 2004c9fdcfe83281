"""`make bench`: runs every measurement and prints what `docs/dev/benchmarks.md` holds.

python -m benchmarks [storage|branches|maintenance|mutate|keys|queries|load|search|server|startup
                      |writers …]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    branches,
    footprint,
    keys,
    load,
    maintenance,
    mutate,
    queries,
    search,
    server,
    startup,
    storage,
    writers,
)
from benchmarks.measure import Line

ALL: dict[str, Callable[[Path], list[Line]]] = {
    "storage": storage.run,
    "branches": branches.run,
    "maintenance": maintenance.run,
    "footprint": footprint.run,
    "mutate": mutate.run,
    "keys": keys.run,
    "queries": queries.run,
    "load": load.run,
    "search": search.run,
    "server": server.run,
    "startup": startup.run,
    "writers": writers.run,
}


def main() -> int:
    wanted = sys.argv[1:] or list(ALL)
    if unknown := [name for name in wanted if name not in ALL]:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as directory:
        lines = [line for name in wanted for line in ALL[name](Path(directory))]
    print("| measured | value | target | holds |")
    print("|---|---|---|---|")
    for line in lines:
        holds = {True: "yes", False: "**no**", None: ""}[line.holds]
        print(f"| {line.what} | {line.value} | {line.target} | {holds} |")
    return 0 if all(line.holds is not False for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
