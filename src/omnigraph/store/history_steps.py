"""Owns the step from one archived graph version to the next: the difference, and how to apply it.

Consecutive versions share nearly everything. A step is small JSON that is the same for commits of
the same kind, because numbers are stored as increments. So thousands of them pack to a few
different texts. The numbers of Lance versions are random and are stored separately.
"""

from __future__ import annotations

from typing import Any

from omnigraph.model.keys import ENTRY_TEXT
from omnigraph.runtime import encode_ulid, is_ulid, ulid_number

Fields = dict[str, Any]
"""A version in the form of JSON."""

_ELSEWHERE = ("version", "token", "commit")
_PIN = "lance_version"
_CONTENT = "content"
_RANDOM = 80
_NEAR = 2**31


def diff_fields(before: Fields, fields: Fields) -> tuple[Fields, list[int]]:
    """The difference of a version from the one before, and the Lance versions of tables that
    changed. The commit and the number of a version are in columns of their own."""
    step: Fields = {}
    pins: list[int] = []
    for name, value in fields.items():
        old = before.get(name)
        if name in _ELSEWHERE or old == value:
            continue
        match name:
            case "tables" if name in before:
                step[name] = _changed_tables(before[name], value, pins, fields["commit"]["id"])
            case "keys":
                recent, *rest = value
                step[name] = [*_added(_recent(before), recent), *rest]
            case "seen" if value == _seen(before):
                step[name] = True
            case "maintained" if name in before:
                step[name] = value - old
            case _:
                step[name] = value
    if gone := [name for name in before if name not in fields]:
        step["-"] = gone
    return step, pins


def apply_step(before: Fields, step: Fields, pins: list[int], commit: str) -> Fields:
    """The version that this step leads to, without what is stored in columns. `commit` is the id of
    the version's commit."""
    gone = step.get("-", ())
    fields = {name: value for name, value in before.items() if name not in gone}
    for name, value in step.items():
        match name:
            case "-" | "commit":
                pass
            case "tables" if name in before:
                fields[name] = _apply_tables(before[name], value, iter(pins), commit)
            case "keys" if isinstance(value[0], list):  # as format 1 had them
                fields[name] = [*value[0], *before.get(name, [])][: value[1]]
            case "keys":
                added, letters, *rest = value
                fields[name] = [(added + _recent(before))[:letters], *rest]
            case "same" if value is True:  # of format 1
                fields[name] = _same(before)
            case "seen" if value is True:
                fields[name] = _seen(before)
            case "maintained" if name in before:
                fields[name] = before[name] + value
            case _:
                fields[name] = value
    return fields


def _changed_tables(
    before: list[Fields], after: list[Fields], pins: list[int], commit: str
) -> list[Any]:
    """The order of the tables if it differs, and the changes of each."""
    known = {pin["key"]: pin for pin in before}
    changes = []
    for pin in after:
        old = known.get(pin["key"], {})
        differs = {
            name: value - old[name] if _counts(value) and _counts(old.get(name)) else value
            for name, value in pin.items()
            if old.get(name, ...) != value
        }
        if differs.get(_PIN):
            pins.append(int(differs[_PIN]))
            differs[_PIN] = True
        if _CONTENT in differs:
            differs[_CONTENT] = _apart(differs[_CONTENT], commit)
        if differs:
            changes.append({"key": pin["key"]} | differs)
    order = [pin["key"] for pin in after]
    return [changes] if order == list(known) else [changes, order]


def _apply_tables(before: list[Fields], changes: list[Any], pins: Any, commit: str) -> list[Fields]:
    tables = {pin["key"]: pin for pin in before}
    for change in changes[0]:
        old = tables.get(change["key"], {})
        new = old | {
            name: value + old[name] if _counts(value) and _counts(old.get(name)) else value
            for name, value in change.items()
        }
        if new.get(_PIN) is True:
            new[_PIN] = str(next(pins))
        if isinstance(new.get(_CONTENT), list):
            new[_CONTENT] = _together(new[_CONTENT], commit)
        tables[change["key"]] = new
    return list(tables.values()) if len(changes) == 1 else [tables[key] for key in changes[1]]


def _apart(content: str, commit: str) -> str | list[int]:
    """A content id is drawn just before the id of the commit that brings it. This is the
    distance."""
    if not is_ulid(content) or not is_ulid(commit):
        return content
    one, other = ulid_number(content), ulid_number(commit)
    apart = [(other >> _RANDOM) - (one >> _RANDOM), other % 2**_RANDOM - one % 2**_RANDOM]
    return apart if all(abs(number) < _NEAR for number in apart) else content


def _together(apart: list[int], commit: str) -> str:
    number = ulid_number(commit)
    return encode_ulid((number >> _RANDOM) - apart[0], number % 2**_RANDOM - apart[1])


def _counts(value: object) -> bool:
    """The numbers of tables are stored as increments: usually one, which gives the same text."""
    return isinstance(value, int) and not isinstance(value, bool)


def _recent(before: Fields) -> str:
    """The entries of recent keys, as text."""
    return str(before["keys"][0]) if "keys" in before else ""


def _added(before: str, after: str) -> list[Any]:
    """New entries come first, old ones drop off at the end. Stores the new ones and the length."""
    for count in range(0, len(after), ENTRY_TEXT):
        if before.startswith(after[count:]):
            return [after[:count], len(after)]
    return [after, len(after)]


def _seen(before: Fields) -> list[Any] | None:
    """What maintenance writes after a commit that a reader can see."""
    return [before["commit"]["id"], before["version"]] if before else None


def _same(before: Fields) -> list[str]:
    """What maintenance writes: the commit before, and those that were the same as that."""
    return [before["commit"]["id"], *before.get("same", [])][:64] if before else []
