"""The packed keys of a version, and those of format 1."""

from __future__ import annotations

import msgspec
import pytest

from omnigraph.model import keys as model
from omnigraph.model.keys import NO_KEYS, Keys, lift_keys
from omnigraph.runtime import encode_ulid


def key(number: int) -> bytes:
    return number.to_bytes(8)


def used(count: int) -> Keys:
    keys = NO_KEYS
    for number in range(1, count + 1):
        keys = keys.used(key(number), version=number * 2, time=number, call=b"c", answers=(number,))
    return keys


def test_a_key_is_found_with_the_version_that_used_it() -> None:
    keys = used(5)
    assert [keys.find(key(number)) for number in range(7)] == [None, 2, 4, 6, 8, 10, None]
    assert (len(keys), keys.older, keys.since) == (5, 0, 1)
    assert [entry.version for entry in keys.entries()] == [10, 8, 6, 4, 2]
    assert NO_KEYS.find(key(1)) is None
    assert (len(NO_KEYS), NO_KEYS.since) == (0, 0)


def test_bytes_that_look_like_a_key_between_two_entries_are_none() -> None:
    keys = NO_KEYS.used(b"\0" * 7 + b"\1", version=1, time=0, call=b"")
    keys = keys.used(b"\2" * 8, version=2, time=0, call=b"")
    inside = keys.recent[3:11]
    assert keys.find(inside) is None
    assert keys.used(inside, version=3, time=0, call=b"").find(inside) == 3


def test_of_many_the_newest_stay_and_the_last_that_went_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model, "RECENT", 3)
    keys = used(7)
    assert [entry.version for entry in keys.entries()] == [14, 12, 10]
    assert (keys.older, keys.since) == (8, 5)


def test_what_was_told_is_said_by_one_version_alone() -> None:
    keys = used(2)
    assert (keys.call, keys.answers) == (b"c", (2,))
    passed = keys.passed_on()
    assert (passed.call, passed.answers, passed.recent) == (b"", (), keys.recent)
    assert passed.passed_on() is passed


def test_the_text_begins_with_what_is_new() -> None:
    """So that the archive can tell a list by what came to it."""
    before, after = (msgspec.to_builtins(used(count))[0] for count in (4, 5))
    assert after[model.ENTRY_TEXT :] == before
    assert len(after) == 5 * model.ENTRY_TEXT


def test_keys_of_format_1_are_found_after_the_lift() -> None:
    commit = encode_ulid(1_700_000_000_123, 5)
    old = [[f"{n:016x}", "0" * 16, n, commit] for n in range(600, 88, -1)]
    held = lift_keys({"format": 1, "keys": old, "branch": "main"})
    keys = msgspec.convert(held["keys"], type=Keys)
    assert held["branch"] == "main"
    assert (len(keys), keys.find(key(600)), keys.find(key(89))) == (512, 600, 89)
    assert keys.since == 1_700_000_000
    assert keys.older == 88  # where the list of those before them is
    assert keys.call == b""  # nobody knows what was asked for
    few = msgspec.convert(lift_keys({"keys": old[:3]})["keys"], type=Keys)
    assert (len(few), few.older) == (3, 0)
    assert lift_keys({"format": 1}) == {"format": 1}
