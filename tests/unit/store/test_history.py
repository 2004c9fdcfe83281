"""The archive: versions that left their chain, found by number and by commit with few requests."""

from __future__ import annotations

import pytest

from omnigraph.errors import Corrupt
from omnigraph.model.version import FORMAT, Commit, GraphVersion
from omnigraph.runtime import encode_ulid
from omnigraph.store.history import SEGMENT, Archive
from omnigraph.store.objects import Absent
from tests.bench.memory import DictStore

MANY = 20 * SEGMENT


class Counting(DictStore):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def get(self, key: str) -> bytes:
        self.reads += 1
        return super().get(key)


def version(number: int) -> GraphVersion:
    return GraphVersion(
        format=FORMAT,
        graph="g",
        token="",
        branch="main",
        incarnation=1,
        version=number,
        commit=Commit(
            id=encode_ulid(number, number),
            parents=(),
            kind="write",
            created_at=number,
            operation="o",
            actor="ann",
        ),
        schema="5" * 64,
        catalog="c" * 64,
        tables=(),
    )


@pytest.fixture(scope="module")
def store() -> Counting:
    objects = Counting()
    Archive("main").write(objects, [version(number) for number in range(1, MANY + 1)])
    return objects


def test_a_page_of_the_log_is_one_read(store: Counting) -> None:
    archive = Archive("main")
    store.reads = 0
    for number in range(MANY // 2, MANY // 2 - 500, -1):
        assert archive.read(store, number) == version(number)
    assert store.reads <= 2
    with pytest.raises(Absent):
        archive.read(store, MANY + 1)
    with pytest.raises(Absent):
        Archive("other").read(store, 1)


def test_a_commit_is_found_by_one_read_however_long_the_history(store: Counting) -> None:
    archive = Archive("main")
    for number in (1, SEGMENT, SEGMENT + 1, MANY // 3, MANY):
        store.reads = 0
        assert archive.find_commit(store, encode_ulid(number, number)) == version(number)
        assert store.reads <= 1
    store.reads = 0
    assert archive.find_commit(store, encode_ulid(MANY + 5, 0)) is None
    assert archive.find_commit(store, encode_ulid(7, 8)) is None
    assert store.reads <= 1


def test_segments_that_overlap_say_the_same(store: Counting) -> None:
    archive = Archive("main")
    archive.write(store, [version(number) for number in range(5, 12)])
    assert archive.read(store, 7) == version(7)
    assert archive.find_commit(store, encode_ulid(9, 9)) == version(9)


def test_a_damaged_segment_is_named() -> None:
    objects = DictStore()
    archive = Archive("main")
    archive.write(objects, [version(1), version(2)])
    (key,) = objects.objects
    objects.objects[key] = objects.objects[key][:50]
    with pytest.raises(Corrupt, match="__history/main/"):
        Archive("main").read(objects, 1)


def test_a_commit_is_found_though_its_segment_is_replaced_after_the_listing() -> None:
    class Replacing(DictStore):
        replaced = False

        def get(self, key: str) -> bytes:
            if not self.replaced:
                self.replaced = True
                Archive("main").write(self, [version(1), version(2), version(3)])
                self.delete(key)
            return super().get(key)

    objects = Replacing()
    Archive("main").write(objects, [version(1), version(2)])
    assert Archive("main").find_commit(objects, encode_ulid(2, 2)) == version(2)
    assert objects.replaced
