"""Owns a check of the environment variables that configure Lance and its runtime. A value that they
cannot read makes them panic, which would look like damage to the graph."""

from __future__ import annotations

import re
from collections.abc import Mapping

from omnigraph.errors import InvalidArgument

_COUNTS = re.compile(
    r"(LANCE|TOKIO)_\w*(THREADS|COUNT|CONCURRENCY|PARALLELISM|SIZE|DEPTH|BYTES|RESERVATION)"
)
_MAY_BE_NONE = ("RESERVATION",)


def check_library_settings(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not name.startswith(("LANCE_", "TOKIO_")) or not _COUNTS.fullmatch(name):
            continue
        least = 0 if name.endswith(_MAY_BE_NONE) else 1
        known = value.isascii() and value.isdecimal() and len(value) < 20
        if not (known and int(value) >= least):
            raise InvalidArgument(
                f"The variable {name} is {value!r}; it has to be a whole number of at least "
                f"{least}.",
                help=f"Set it to one, or remove it: unset {name}",
            )
