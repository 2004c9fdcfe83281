"""A store that ignores the condition of a put would let two writers win: it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import GraphNotFound, UnsafeStore
from omnigraph.settings import Settings
from omnigraph.store.objects import ObjectStore, StoredFile
from omnigraph.store.roots import Root
from tests.bench.s3 import S3Server

SCHEMA = "node Note { text: String }"


class IgnoresConditions:
    """Takes every put for a plain one, as some servers of the S3 kind do."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    def get(self, key: str) -> bytes:
        return self._inner.get(key)

    def put_if_absent(self, key: str, data: bytes, *, after: Sequence[Path] = ()) -> bool:
        self._inner.put(key, data)
        return True

    def put(self, key: str, data: bytes) -> None:
        self._inner.put(key, data)

    def get_parts(self, key: str) -> Iterator[bytes]:
        return self._inner.get_parts(key)

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        self._inner.put_parts(key, parts)

    def exists(self, key: str) -> bool:
        return self._inner.exists(key)

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        return self._inner.list(prefix, limit=limit)

    def files(self, prefix: str) -> Sequence[StoredFile]:
        return self._inner.files(prefix)

    def groups(self, prefix: str) -> Sequence[str]:
        return self._inner.groups(prefix)

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        return self._inner.glance(keys)

    def delete(self, key: str) -> None:
        self._inner.delete(key)


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From then on every handle that is opened meets such a store."""
    right = Root.objects

    def spoiled(self: Root, settings: Settings) -> ObjectStore:
        return IgnoresConditions(right(self, settings))

    return lambda: monkeypatch.setattr(Root, "objects", spoiled)


def test_init_refuses_a_store_that_ignores_put_if_absent(
    root: str, spoil: Callable[[], None]
) -> None:
    spoil()
    with pytest.raises(UnsafeStore):
        omnigraph.init(root, schema=SCHEMA)
    with pytest.raises(GraphNotFound):
        omnigraph.open(root)


def write_rows(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Note", [{"text": "three"}])


WRITES: dict[str, Callable[[Graph], object]] = {
    "rows": write_rows,
    "schema": lambda g: g.apply_schema(SCHEMA + "\nnode Tag { word: String }"),
    "branch": lambda g: g.create_branch("new"),
    "deletion": lambda g: g.delete_branch("side"),
    "compaction": lambda g: g.optimize(),
}


@pytest.mark.s3
@pytest.mark.parametrize("write", WRITES)
def test_the_first_write_of_a_handle_refuses_a_store_that_ignores_put_if_absent(
    write: str, s3_environment: S3Server, s3_prefix: str, spoil: Callable[[], None]
) -> None:
    root = s3_environment.url(s3_prefix)
    with omnigraph.init(root, schema=SCHEMA) as right:
        for text in ("one", "two"):
            with right.transaction() as tx:
                tx.append("Note", [{"text": text}])
        right.create_branch("side")
        head = right.snapshot().version
        spoil()
        with omnigraph.open(root) as g:
            assert g.snapshot().count("Note") == 2
            for _ in range(2):  # nor does it think better of it
                with pytest.raises(UnsafeStore):
                    WRITES[write](g)
        assert right.snapshot().version == head
        assert right.branches() == ["main", "side"]
