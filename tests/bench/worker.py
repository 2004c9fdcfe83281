"""The child side of `processes`: runs one function of a test in a fresh interpreter.

Messages to the parent are JSON lines on what was stdout; whatever the function prints goes to
stderr. The process ends with its parent, because its stdin then ends.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

PARENT_GONE = 113


class _Line:
    """The connection to the parent, once there is one."""

    out: TextIO | None = None
    resumed = threading.Semaphore(0)


def report(point: str) -> None:
    """Tell the parent that a point was reached, and go on. Outside of a worker: nothing."""
    if _Line.out is not None:
        _say({"point": point})


def pause(point: str) -> None:
    """Tell the parent that a point was reached, and wait until it resumes or kills us."""
    if _Line.out is not None:
        report(point)
        _Line.resumed.acquire()


def _say(message: dict[str, Any]) -> None:
    assert _Line.out is not None
    _Line.out.write(json.dumps(message) + "\n")
    _Line.out.flush()


def _listen() -> None:
    for line in sys.stdin:
        if line.strip() == "resume":
            _Line.resumed.release()
    os._exit(PARENT_GONE)


def _resolve(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def main() -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    _Line.out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    task = json.loads(sys.stdin.readline())
    try:
        function = _resolve(task["target"])
        _say({"ready": True})
        sys.stdin.readline()  # the barrier: "go"
        threading.Thread(target=_listen, daemon=True).start()
        started = time.perf_counter()
        result = function(**task["arguments"])
        _say({"result": result, "seconds": time.perf_counter() - started})
    except BaseException as error:  # noqa: BLE001  a panic of Lance is no Exception
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        _say({"error": kind, "message": str(error), "traceback": traceback.format_exc()})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of the function, and the listener, must not hold us


if __name__ == "__main__":
    # The function under test imports this module by name: there must be only one of it.
    importlib.import_module("tests.bench.worker").main()
