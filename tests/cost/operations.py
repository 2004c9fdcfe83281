"""The operations of the contract (design section 5), each with what it costs and what it may cost.

A row that is replaced in a fragment which
keeps other rows costs one more write, the fragment's new deletion file: the contract's 3k + 1 is
for fragments that lose all their rows or none. Rows are given whole except where a name says "in
part"; a statement that has to read rows reads them when it runs, so a block of n such statements
has n such hops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.compute as pc

from omnigraph.engine import branches_and_tags
from omnigraph.engine.graph import Graph
from omnigraph.model.options import CommitOptions
from omnigraph.telemetry import Ledger
from tests.cost.world import SHARDS, Measured, World


@dataclass(frozen=True)
class Bound:
    """What the contract allows."""

    writes: int
    reads: int
    hops: int


@dataclass(frozen=True)
class Operation:
    """`prepare` makes ready what is not measured and gives back what is. `writes`, `reads` and
    `hops` are what it costs on S3, exactly, so that more is a decision and not an accident. (On a
    local disk opening a table is one read and not two.)"""

    name: str
    needs: frozenset[str]
    prepare: Callable[[World], Measured]
    writes: int
    reads: int
    hops: int
    bound: Bound | None

    def __str__(self) -> str:
        return self.name


def _insert_keyless(world: World) -> Measured:
    return lambda: world.commit(lambda tx: tx.append("Event", {"text": "one"}))


def _insert_keyed(world: World) -> Measured:
    row = {"name": f"new{world.number()}"}
    return lambda: world.commit(lambda tx: tx.append("Person", row))


def _upsert_new(world: World) -> Measured:
    row = {"name": f"new{world.number()}", "age": 1}
    return lambda: world.commit(lambda tx: tx.upsert("Person", row))


def _upsert_alone(world: World) -> Measured:
    """The row has a fragment to itself, which disappears."""
    row = {"name": "solo0", "age": world.number()}
    return lambda: world.commit(lambda tx: tx.upsert("Person", row))


def _upsert_shared(world: World) -> Measured:
    """The row's fragment keeps other rows and has a deletion file already."""
    row = {"name": world.bulk_name(), "age": world.number()}
    return lambda: world.commit(lambda tx: tx.upsert("Person", row))


def _upsert_scattered(world: World) -> Measured:
    """Rows of several fragments, each of which keeps others: their deletion files are read and
    written side by side."""
    rows = [{"name": name, "age": world.number()} for name in world.shard_names()]
    return lambda: world.commit(lambda tx: tx.upsert("Person", rows))


def _upsert_in_part(world: World) -> Measured:
    """What is not given has to be read."""
    return lambda: world.commit(lambda tx: tx.upsert("Person", {"name": "solo1"}))


def _insert_edge(world: World) -> Measured:
    row = {"from": "solo0", "to": "solo1"}
    return lambda: world.commit(lambda tx: tx.append("Knows", row))


def _insert_counted_edge(world: World) -> Measured:
    """An edge type with @card, so that the edges of its source are counted."""
    row = {"from": "solo0", "to": "solo1"}
    return lambda: world.commit(lambda tx: tx.append("Lives", row))


def _touch_two_types(world: World) -> Measured:
    n = world.number()

    def run() -> Ledger:
        with world.graph.transaction() as tx:
            tx.append("Event", {"text": "two"})
            tx.upsert("Person", {"name": "solo0", "age": n})
        return tx.io

    return run


def _touch_five_types(world: World) -> Measured:
    n = world.number()

    def run() -> Ledger:
        with world.graph.transaction() as tx:
            tx.append("Event", {"text": "five"})
            tx.upsert("Person", {"name": f"new{n}", "age": 0})
            tx.upsert("Place", {"name": "solo2", "seen": n})
            tx.append("Knows", {"from": f"new{n}", "to": "solo1"})
            tx.append("Lives", {"from": f"new{n}", "to": "solo2"})
        return tx.io

    return run


def _mutate_keyless(world: World) -> Measured:
    """Parsed and checked from its text, which is another one each time."""
    text = f'insert Event {{ text: "{world.number()}" }}'
    return lambda: world.graph.mutate(text).io


def _mutate_keyed(world: World) -> Measured:
    text = f'insert Person {{ name: "new{world.number()}", age: 1 }}'
    return lambda: world.graph.mutate(text).io


def _mutate_edge(world: World) -> Measured:
    text = f'insert Knows {{ from: "solo0", to: "solo1", since: {world.number()} }}'
    return lambda: world.graph.mutate(text).io


def _mutate_by_key(world: World) -> Measured:
    """The row is looked up, and read because an update keeps the rest of it; nothing is scanned."""
    text = f'update Person set {{ age: {world.number()} }} where name = "solo0"'
    return lambda: world.graph.mutate(text).io


def _mutate_by_id(world: World) -> Measured:
    text = f'update Person set {{ age: {world.number()} }} where @id = "solo2" and length(name) > 4'
    return lambda: world.graph.mutate(text).io


def _mutate_nobody(world: World) -> Measured:
    """Who is not there is known without a look at the table."""
    text = f'delete Person where name = "nobody{world.number()}"'
    return lambda: world.graph.mutate(text).io


def _check_head(world: World) -> Measured:
    return lambda: world.graph.snapshot().io


def _create(graph: Graph, name: str) -> Ledger:
    ledger = Ledger()
    branches_and_tags.create_branch(graph._session, name, "main", CommitOptions(), ledger)
    return ledger


def _delete(graph: Graph, name: str) -> Ledger:
    ledger = Ledger()
    branches_and_tags.delete_branch(graph._session, name, CommitOptions(), ledger)
    return ledger


def _create_branch(world: World) -> Measured:
    name = f"branch{world.number()}"
    return lambda: _create(world.graph, name)


def _delete_branch(world: World) -> Measured:
    name = f"branch{world.number()}"
    _create(world.graph, name)
    return lambda: _delete(world.graph, name)


def _delete_unseen_branch(world: World) -> Measured:
    """A branch that another process made."""
    name = f"branch{world.number()}"
    world.builder.create_branch(name)
    return lambda: _delete(world.graph, name)


def _recreate_branch(world: World) -> Measured:
    name = f"branch{world.number()}"
    _create(world.graph, name)
    _delete(world.graph, name)
    return lambda: _create(world.graph, name)


def _recreate_unseen_branch(world: World) -> Measured:
    """A name that another process used, often: the first put is refused, and then the end of the
    chain is looked for, not walked to."""
    name = f"branch{world.number()}"
    for _ in range(6):
        world.builder.create_branch(name)
        world.builder.delete_branch(name)
    return lambda: _create(world.graph, name)


def _fast_forward(world: World) -> Measured:
    """A branch becomes what another is, which has a commit more."""
    behind, ahead = f"behind{world.number()}", f"ahead{world.number()}"
    _create(world.graph, behind)
    _create(world.graph, ahead)
    world.graph.protect(ahead)  # a commit that any graph can make
    target = world.graph.branch(behind)
    return lambda: target.merge(ahead).io


def _open_and_ask(world: World) -> Measured:
    """Nothing is known: the stamp, the head, the catalog, the table, and the rows."""

    def run() -> Ledger:
        graph = world.open()
        snapshot = graph.snapshot()
        found = snapshot.scan("Place", filter=pc.field("name") == "solo1").read_all()
        assert found["name"].to_pylist() == ["solo1"]
        total = Ledger()
        for part in (graph.io, snapshot.io):  # one after the other, so that hops add up
            total.join([part])
        return total

    return run


def _operation(
    prepare: Callable[[World], Measured],
    *needs: str,
    writes: int,
    reads: int,
    hops: int,
    bound: Bound | None,
) -> Operation:
    name = prepare.__name__.strip("_")
    return Operation(name, frozenset(needs), prepare, writes, reads, hops, bound)


_EVERYTHING = ("Event", "Person", "Place", "Knows", "Lives")
_INSERT = Bound(writes=4, reads=0, hops=4)
_CREATE = Bound(writes=1, reads=1, hops=3)
_DELETE = Bound(writes=1, reads=2, hops=3)
_RECREATE = Bound(writes=1, reads=3, hops=3)
_FORWARD = Bound(writes=1, reads=2, hops=3)  # the head of either, and the put


def _touch(types: int, *, deletions: int = 0) -> Bound:
    return Bound(writes=3 * types + 1 + deletions, reads=6 * types, hops=8)


CONTRACT: tuple[Operation, ...] = (
    _operation(_insert_keyless, "Event", writes=4, reads=0, hops=4, bound=_INSERT),
    _operation(_insert_keyed, "Person", writes=4, reads=0, hops=4, bound=_touch(1)),
    _operation(_upsert_new, "Person", writes=4, reads=0, hops=4, bound=_touch(1)),
    _operation(_upsert_alone, "Person", writes=4, reads=0, hops=4, bound=_touch(1)),
    _operation(_upsert_shared, "Person", writes=5, reads=1, hops=6, bound=_touch(1, deletions=1)),
    _operation(
        _upsert_scattered,
        "Person",
        writes=4 + SHARDS,
        reads=SHARDS,
        hops=6,
        bound=_touch(1, deletions=SHARDS),
    ),
    _operation(_upsert_in_part, "Person", writes=4, reads=1, hops=5, bound=_touch(1)),
    _operation(_insert_edge, "Person", "Knows", writes=4, reads=0, hops=4, bound=_touch(1)),
    _operation(_insert_counted_edge, "Person", "Lives", writes=4, reads=0, hops=4, bound=_touch(1)),
    _operation(_touch_two_types, "Event", "Person", writes=7, reads=0, hops=4, bound=_touch(2)),
    _operation(_touch_five_types, *_EVERYTHING, writes=16, reads=0, hops=4, bound=_touch(5)),
    _operation(_mutate_keyless, "Event", writes=4, reads=0, hops=4, bound=_INSERT),
    _operation(_mutate_keyed, "Person", writes=4, reads=0, hops=4, bound=_touch(1)),
    _operation(_mutate_edge, "Person", "Knows", writes=4, reads=0, hops=4, bound=_touch(1)),
    _operation(_mutate_by_key, "Person", writes=4, reads=1, hops=5, bound=_touch(1)),
    _operation(_mutate_by_id, "Person", writes=4, reads=1, hops=5, bound=_touch(1)),
    _operation(_mutate_nobody, "Person", writes=0, reads=1, hops=1, bound=_touch(1)),
    _operation(_check_head, writes=0, reads=1, hops=1, bound=Bound(writes=0, reads=1, hops=1)),
    _operation(_create_branch, writes=1, reads=1, hops=2, bound=_CREATE),
    _operation(_delete_branch, writes=1, reads=1, hops=2, bound=_DELETE),
    _operation(_delete_unseen_branch, writes=1, reads=2, hops=3, bound=_DELETE),
    _operation(_recreate_branch, writes=1, reads=1, hops=2, bound=_RECREATE),
    _operation(_fast_forward, writes=1, reads=2, hops=3, bound=_FORWARD),
)

COLD: tuple[Operation, ...] = (
    # Not of a warm handle: the contract asks only that these be flat.
    _operation(_recreate_unseen_branch, writes=2, reads=4, hops=6, bound=None),
    _operation(_open_and_ask, "Place", writes=0, reads=10, hops=8, bound=None),
)

OPERATIONS = CONTRACT + COLD


def operations_of(world: World) -> list[Operation]:
    return [operation for operation in OPERATIONS if operation.needs <= world.kinds]
