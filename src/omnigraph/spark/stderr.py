"""Owns the stderr of the JVM while it starts. Every line is passed on, except one meaningless line
that no option turns off."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

_NOISE = (b"WARNING: Using incubator modules",)


@contextlib.contextmanager
def filtered_stderr() -> Iterator[None]:
    """A process that starts inside this block gets a pipe as its stderr, for as long as it
    lives."""
    try:
        real = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    thread = threading.Thread(target=_hand_on, args=(reader, os.dup(real)), daemon=True)
    thread.start()
    failed = True
    try:
        yield
        failed = False
    finally:
        os.dup2(real, 2)
        os.close(real)
        if failed:
            thread.join(1.0)  # its last output should come before our error about it


def _hand_on(reader: int, real: int) -> None:
    with open(reader, "rb") as lines, contextlib.suppress(OSError):
        for line in lines:
            if not line.startswith(_NOISE):
                os.write(real, line)
    os.close(real)
