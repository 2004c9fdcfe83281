"""Owns the first moments of the program: it imports nothing, so that Ctrl-C is one line from the
beginning."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    try:
        from omnigraph.cli.run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("Interrupted. The graph is as it was.", file=sys.stderr)  # noqa: T201
        code = 130
    sys.exit(code)
