"""Owns the first moments of the program. It imports nothing heavy, so Ctrl-C gives a clean one-line
message from the start."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    # Nothing here multiplies matrices, and OpenBLAS sends Ctrl-C if it cannot start a thread.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from omnigraph.cli.run import run
        from omnigraph.cli.without_pandas import leave_out

        leave_out()
        code = run(sys.argv[1:])
        # What was asked for is done and told: Ctrl-C while Python ends would only change the code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        print("Interrupted. The graph is as it was.", file=sys.stderr)  # noqa: T201
        code = 130
    # Ctrl-C inside an `exec` (a dataclass being made) leaves Python sure that nobody caught it: it
    # would end by the signal instead of the code. The next `eval` of a text forgets that.
    eval("0")
    sys.exit(code)
