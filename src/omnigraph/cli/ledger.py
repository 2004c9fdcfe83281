"""Owns `--io`: the storage requests of a whole command, printed when it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.value_text import count_text, size_text

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.telemetry import Ledger


@contextlib.contextmanager
def print_ledger(invocation: Invocation) -> Iterator[None]:
    """Prints to stderr, also when the command fails: the requests were made all the same."""
    if not invocation.options.io:
        yield
        return
    from omnigraph.telemetry import watch_requests

    with watch_requests() as watched:
        try:
            yield
        finally:
            for line in ledger_lines(watched.total()):
                invocation.out.warn(line)


def ledger_lines(ledger: Ledger) -> Iterator[str]:
    counts = [
        count_text(ledger.reads, "read"),
        count_text(ledger.writes, "write"),
        f"{count_text(ledger.hops, 'hop')} in sequence",
        f"{size_text(ledger.read_bytes)} in",
        f"{size_text(ledger.written_bytes)} out",
    ]
    yield f"io: {', '.join(counts)}"
    for purpose, verbs in ledger.by_purpose.items():
        shown = ", ".join(f"{verb} {count}" for verb, count in sorted(verbs.items()))
        yield f"  {purpose:<16} {shown}"
