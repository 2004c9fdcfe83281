"""The form of a segment: whatever versions say comes back, and what follows a pattern is small."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import Corrupt
from omnigraph.model.keys import NO_KEYS
from omnigraph.model.version import (
    FORMAT,
    Commit,
    ForkPoint,
    GraphVersion,
    SeenCommit,
    StreamMark,
    TablePin,
    TableStatistics,
)
from omnigraph.runtime import encode_ulid, ulid_number
from omnigraph.store.history_rows import decode_rows, encode_rows
from omnigraph.store.versions import convert_version

KEY = "__history/main/segment"
OTHER = "01J00000000000000000000000"


def restored(data: bytes) -> list[GraphVersion]:
    return [convert_version(fields, KEY) for fields, _ in decode_rows(data, KEY)]


def pin(key: str, lance: int, count: int, content: str = "content") -> TablePin:
    return TablePin(
        key=key,
        type_id=f"id of {key}",
        location="nodes/0123456789abcdef-01J00000000000000000000000",
        table_version=count,
        content=content,
        lance_version=str(lance),
        rows=count * 3,
        fragments=count % 7,
    )


def one_row_commits(count: int) -> Iterator[GraphVersion]:
    """As a process writes them that updates one row after the other."""
    luck, counted, parent = random.Random(5), 7 << 40, ""
    time = 1_794_840_145_150_122
    for number in range(1, count + 1):
        time += luck.randrange(4_000, 20_000)
        counted += 3
        began = time // 1000 - luck.randrange(3, 8)
        content = encode_ulid(time // 1000 - luck.randrange(0, 2), counted - 2)
        commit = Commit(
            id=encode_ulid(time // 1000, counted),
            parents=(parent,) if parent else (),
            kind="write",
            created_at=time,
            operation=encode_ulid(began, counted - 1),
            statistics={"node:Person": TableStatistics(updated=1, bytes=luck.randrange(900, 999))},
        )
        parent = commit.id
        yield GraphVersion(
            format=FORMAT,
            graph="g",
            token="",
            branch="main",
            incarnation=1,
            version=number,
            commit=commit,
            schema="5" * 64,
            catalog="c" * 64,
            tables=(pin("node:Person", luck.getrandbits(63) + 2**63, number, content),),
        )


def _near(ulid: str, by: int) -> str:
    number = ulid_number(ulid) + by
    return encode_ulid(number >> 80, number % 2**80)


_ULIDS = st.builds(encode_ulid, st.integers(1, 2**40), st.integers(0, 2**80 - 1))
_TEXTS = st.none() | st.sampled_from(["ann", "ben", "Ä\n"])


@st.composite
def chains(draw: st.DrawFn) -> list[GraphVersion]:
    """Versions that follow each other, with anything in them that a version can have."""
    first = draw(st.integers(1, 10_000))
    versions: list[GraphVersion] = []
    for number in range(first, first + draw(st.integers(1, 8))):
        before = versions[-1].commit.id if versions else draw(_ULIDS)
        commit = Commit(
            id=draw(_ULIDS),
            parents=draw(st.sampled_from([(before,), (), (before, OTHER)])),
            kind=draw(st.sampled_from(["write", "optimize", "merge"])),
            created_at=draw(st.integers(1, 2**50)),
            operation=draw(_ULIDS | st.sampled_from(["", "o", "not a ulid"])),
            actor=draw(_TEXTS),
            message=draw(_TEXTS),
            statistics=draw(
                st.dictionaries(
                    st.sampled_from("ab"), st.builds(TableStatistics, inserted=st.integers(0, 3))
                )
            ),
        )
        kept = versions[-1] if versions else None
        tables = draw(
            st.lists(
                st.builds(
                    pin,
                    st.sampled_from(["node:A", "node:B", "edge:C"]),
                    st.integers(1, 2**64 - 1),
                    st.integers(0, 9),
                    _ULIDS
                    | st.sampled_from(["nodes/a@7", _near(commit.id, 5), _near(commit.id, -5)]),
                ),
                unique_by=lambda one: one.key,
            )
            | st.just(list(kept.tables) if kept else [])
        )
        keys = draw(st.sampled_from([kept.keys if kept else NO_KEYS, NO_KEYS]))
        for key in draw(st.lists(st.binary(min_size=8, max_size=8), max_size=4)):
            told = draw(st.lists(st.integers(0, 9), max_size=2).map(tuple))
            keys = keys.used(key, version=number, time=number, call=b"c", answers=told)
        if draw(st.booleans()):
            keys = keys.passed_on()
        versions.append(
            GraphVersion(
                format=FORMAT,
                graph="g",
                token="",
                branch="main",
                incarnation=draw(st.integers(1, 2)),
                version=number,
                commit=commit,
                schema=draw(st.sampled_from(["5" * 64, "7" * 64])),
                catalog="c" * 64,
                tables=tuple(tables),
                keys=keys,
                streams=draw(st.sampled_from([{}, {"q": StreamMark(1, 2, OTHER)}])),
                ancestry=draw(st.sampled_from([{}, {"1:other": 4}])),
                first=draw(st.sampled_from([1, number])),
                merged=draw(
                    st.none() | st.just(ForkPoint(branch="other", incarnation=1, version=4))
                ),
                forwarded=draw(st.booleans()),
                forked_from=draw(
                    st.none() | st.just(ForkPoint(branch="other", incarnation=1, version=4))
                ),
                deleted=draw(st.booleans()),
                tag=draw(st.booleans()),
                floor=draw(st.integers(1, min(3, number))),
                folded=draw(st.integers(1, min(3, number))),
                gc_cutoff=draw(st.integers(0, 3)),
                kept=draw(st.sampled_from([(), (1,)])),
                seen=draw(
                    st.sampled_from(
                        [None, SeenCommit(before, max(1, number - 1)), SeenCommit(OTHER, 1)]
                        + ([kept.seen] if kept else [])
                    )
                ),
                maintained=draw(st.integers(0, 5)),
                forgotten=draw(st.integers(1, min(3, number))),
            )
        )
    return versions


@given(chains())
def test_what_versions_say_comes_back(versions: list[GraphVersion]) -> None:
    times = {version.version: version.version * 1_000_000 for version in versions[::2]}
    data = encode_rows(versions, times)
    assert restored(data) == versions
    told = [time for _, time in decode_rows(data, KEY)]
    assert told == [times.get(version.version) for version in versions]


def test_a_one_row_commit_takes_a_few_bytes() -> None:
    versions = list(one_row_commits(1024))
    data = encode_rows(versions, {})
    assert restored(data) == versions
    assert len(data) < 17 * 1024


def test_commits_of_two_writers_in_turn_are_as_small() -> None:
    """Each counts on from its own."""

    def by_writer(ulid: str, version: int) -> str:
        return ulid[:10] + "ABCDEFGH"[version % 2] + ulid[11:]

    versions = [
        msgspec.structs.replace(
            version,
            commit=msgspec.structs.replace(
                version.commit,
                id=by_writer(version.commit.id, version.version),
                parents=(),
                operation="o",
            ),
            tables=tuple(
                msgspec.structs.replace(one, content=by_writer(one.content, version.version))
                for one in version.tables
            ),
        )
        for version in one_row_commits(1024)
    ]
    alone = [
        msgspec.structs.replace(
            version, commit=msgspec.structs.replace(version.commit, parents=(), operation="o")
        )
        for version in one_row_commits(1024)
    ]
    data = encode_rows(versions, {})
    assert restored(data) == versions
    assert len(data) < len(encode_rows(alone, {})) + 1024


@pytest.mark.parametrize("place", [10, 200, -10])
def test_a_flipped_bit_is_found(place: int) -> None:
    data = bytearray(encode_rows(list(one_row_commits(50)), {}))
    data[place] ^= 4
    with pytest.raises(Corrupt, match=KEY):
        restored(bytes(data))
