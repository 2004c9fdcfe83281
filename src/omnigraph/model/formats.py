"""Owns the steps between formats: how this program reads what an older one wrote. Pure.

Old graph versions are never rewritten, so every step is carried out whenever one is read. Upgrading
a graph only means that a commit on each branch tells older programs not to write to it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.model.keys import lift_keys

Lift = Callable[[dict[str, Any]], dict[str, Any]]


def _lift_from_1(held: dict[str, Any]) -> dict[str, Any]:
    return lift_keys(_lift_same(_lift_counters(held)))


def _lift_same(held: dict[str, Any]) -> dict[str, Any]:
    """Format 1 listed the commits that a reader could not distinguish from the newest, up to a
    limit. The last one listed is the visible one, as far back as is known."""
    if not (same := held.get("same")):
        return held
    version = max(held["version"] - len(same), held.get("first", 1))
    return held | {"seen": [same[-1], version]}


def _lift_counters(held: dict[str, Any]) -> dict[str, Any]:
    """Format 1 counted the visible changes of a table, and two branches could give one number to
    two contents. Only the Lance version identifies the contents of such a table."""
    return held | {"tables": [_lift_pin(pin) for pin in held["tables"]]}


def _lift_pin(pin: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in pin.items() if name != "content_version"}
    return {"content": f"{pin['location']}@{pin['lance_version']}"} | kept


LIFTS: Mapping[int, Lift] = {1: _lift_from_1}
"""From a format to the next one: the decoded JSON of a graph version in the form of the next
format."""


def lift(
    held: dict[str, Any], *, to: int, lifts: Mapping[int, Lift] | None = None
) -> dict[str, Any]:
    """A graph version of an older format in the form of a newer one."""
    steps = LIFTS if lifts is None else lifts
    for number in range(int(held["format"]), to):
        held = steps[number](held) | {"format": number + 1}
    return held


def lift_plan(plan: dict[str, Any], contents: Mapping[str, str]) -> dict[str, Any]:
    """The unpublished rest of an operation that an older program may have begun. `contents` are
    those of the tables in the version on which it depends."""
    lifted = dict(plan)
    for name in ("reads", "checks"):
        lifted[name] = {
            table: known if isinstance(known, str) else contents.get(table, "")
            for table, known in plan.get(name, {}).items()
        }
    lifted["actions"] = [
        action | {"pin": _lift_pin(action["pin"])}
        if "content_version" in action.get("pin", {})
        else action
        for action in plan.get("actions", ())
    ]
    return lifted
