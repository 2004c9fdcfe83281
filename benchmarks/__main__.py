"""`make bench`: runs every measurement and prints what `docs/dev/benchmarks.md` holds."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import branches, load, maintenance, mutate, queries, storage


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as directory:
        place = Path(directory)
        lines = [
            *storage.run(place),
            *branches.run(place),
            *maintenance.run(place),
            *mutate.run(place),
            *queries.run(place),
            *load.run(place),
        ]
    print("| measured | value | target | holds |")
    print("|---|---|---|---|")
    for line in lines:
        holds = {True: "yes", False: "**no**", None: ""}[line.holds]
        print(f"| {line.what} | {line.value} | {line.target} | {holds} |")
    return 0 if all(line.holds is not False for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
