"""Owns the steps between formats: how what an older program wrote is read by this one. Pure.

Old graph versions stay as they are for ever, so every step is made whenever one is read; to
upgrade a graph is only to say, by a commit on each branch, that older programs must not write
to it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Lift = Callable[[dict[str, Any]], dict[str, Any]]

LIFTS: Mapping[int, Lift] = {}
"""From a format to the next one: the decoded JSON of a graph version, as that would have it."""


def lift(
    held: dict[str, Any], *, to: int, lifts: Mapping[int, Lift] | None = None
) -> dict[str, Any]:
    """A graph version of an older format as it would have been written in a newer one."""
    steps = LIFTS if lifts is None else lifts
    for number in range(int(held["format"]), to):
        held = steps[number](held) | {"format": number + 1}
    return held
