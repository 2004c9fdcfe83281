"""No public read shows a row that a rule hides, nor anything of a type that is hidden: not in an
answer, not in an error, not in a count."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Branch, Graph, Snapshot, Transaction
from omnigraph.errors import Denied, EngineMissing, NotFound, OmnigraphError
from omnigraph.model.row_rule import EVERY_ROW, NO_ROW, ColumnOf, IsTrue, Negated
from tests.policy.handles import ASKS_NOTHING, TABLES, Call, public
from tests.policy.test_rows_drawn import EVE, Rules

SCHEMA = """
node Person { name: String @key age: I32? hush: Bool note: String? @index photo: Blob? rank: F64? }
node Team { name: String @key }
node Zebra { name: String @key }
edge Knows: Person -> Person { since: I32? @key(src, dst) }
edge In: Person -> Team { @key(src, dst) }
edge Zigs: Person -> Zebra { @key(src, dst) }
"""
RULES = Rules(
    {
        "node:Person": Negated(IsTrue(ColumnOf("hush"))),
        "node:Team": EVERY_ROW,
        "node:Zebra": NO_ROW,
        "edge:Knows": EVERY_ROW,
        "edge:In": EVERY_ROW,
        "edge:Zigs": EVERY_ROW,
    }
)
MARKS = ("Xavier", "Xena", "Zebra", "Zigs", "Zorro", "secret", "4711")
"""Of hidden rows: names, ids, texts, numbers; and the names of what is hidden wholly."""


@pytest.fixture(scope="module")
def whole() -> Iterator[Graph]:
    yield from begun("memory://hidden-rows")


@pytest.fixture
def fresh() -> Iterator[Graph]:
    yield from begun(f"memory://hidden-{uuid.uuid4().hex}")


def begun(root: str) -> Iterator[Graph]:
    with omnigraph.init(root, schema=SCHEMA) as g:
        with g.transaction() as tx:
            people = [
                {"name": "Ada", "hush": False, "note": "plain words", "photo": b"p", "age": 1},
                {"name": "Bob", "hush": False, "age": 2},
                {"name": "Xavier", "hush": True, "note": "secret words", "photo": b"secret"},
                {"name": "Xena", "hush": True, "age": 4711, "note": "more secret"},
            ]
            tx.append("Person", people)
            tx.append("Team", [{"name": "Blue"}])
            tx.append("Zebra", [{"name": "Zorro"}])
            ends = [("Ada", "Xavier"), ("Xavier", "Bob"), ("Xena", "Xavier"), ("Ada", "Bob")]
            tx.append("Knows", [{"src": a, "dst": b} for a, b in ends])
            tx.append("In", [{"src": name, "dst": "Blue"} for name in ("Ada", "Xena")])
            tx.append("Zigs", {"src": "Ada", "dst": "Zorro"})
        g.create_branch("other")
        g.create_branch("doomed")
        g.create_tag("t1")
        g.mutate('update Person set { age: 9 } where name = "Ada"')
        g.mutate('update Person set { note: "secret still" } where name = "Xena"')
        g.mutate('insert Person { name: "Cyd", hush: false }')
        yield g


def told(value: Any) -> str:
    """All of an answer as a text."""
    if isinstance(value, pa.Table | pa.RecordBatch):
        return repr(value.to_pylist())
    if isinstance(value, Branch | Snapshot | Transaction):
        return ""
    if isinstance(value, dict):
        return repr({told(key): told(one) for key, one in value.items()})
    if isinstance(value, list | tuple):
        return repr([told(one) for one in value])
    if hasattr(value, "read") and hasattr(value, "size"):
        return repr(value.read())
    if hasattr(value, "changes") and hasattr(value, "commit") and hasattr(value, "cursor"):
        return told([value.commit, list(value.changes), value.schema])
    if hasattr(value, "to_pylist"):
        return repr(value.to_pylist())
    return repr(value)


def queries(at: Any) -> Iterator[Any]:
    """Bindings in each place of the language."""
    for text in (
        "match { $p: Person } return { $p }",
        "match { $p: Person } return { count($p), max($p.age), min($p.note), sum($p.age) }",
        "match { $p: Person $p Knows $q } return { $p.name, $q.name }",
        "match { $p: Person $p Knows{1,4} $q } return { $p.name, $q.name }",
        "match { $p: Person $p Knows{2} $q } return { $p.name, $q.name }",
        "match { $p: Person $p <Knows{0,3}> $q } return { $p.name, $q.name }",
        "match { $p: Person optional { $p Knows $q } } return { $p.name, $q.name }",
        "match { $p: Person exists { $p Knows $_ } } return { $p.name }",
        "match { $p: Person not { $p <Knows $_ } } return { $p.name }",
        "match { $t: Team $p In $t } return { $t.name, collect($p.name) }",
        "match { $x: * } return { $x }",
        "match { $p * $q } return { $p, $q }",
        'match { $p: Person $p.name = "Xena" } return { $p.name }',
        "match { $p: Person } return { $p.name } order { $p.age desc } limit 2",
    ):
        try:
            yield at.query(text).to_pylist()
        except OmnigraphError as error:
            if "mistake" not in str(error):
                raise
        yield at.query("match { $p: Person } return { $p.name }").to_pylist()


def exported(at: Any) -> Iterator[Any]:
    sink = io.BytesIO()
    counts = at.export(to=sink).counts
    yield counts, sink.getvalue()
    sink = io.BytesIO()
    at.export(types=["Person"], format="csv", to=sink)
    yield sink.getvalue()
    sink = io.BytesIO()
    at.export(types=["Person"], format="arrow", to=sink)
    yield pa.ipc.open_stream(sink.getvalue()).read_all()


def rows(found: Any) -> Any:
    return found.read_all() if hasattr(found, "read_all") else found


def blob(at: Any, name: str) -> Any:
    """An error repeats the id that was asked for."""
    try:
        return at.blob("Person", name, "photo")
    except NotFound:
        return None


READS: dict[str, Call] = {
    "query": lambda s: list(queries(s)),
    "explain": lambda s: [
        s.explain("match { $p: Person $p Knows $q } return { $p.name }", analyze=analyze)
        for analyze in (False, True)
    ],
    "search": lambda s: [s.search(word).to_pylist() for word in ("secret", "words", "Xena")],
    "scan": lambda s: [
        rows(s.scan("Person")),
        rows(s.scan("Person", columns=["note"], filter="age > 4000")),
        rows(s.scan("Knows")),
        rows(s.scan("In", filter=pc.field("src") == "Xena")),
    ],
    "entity": lambda s: [s.entity("Person", n) for n in ("Ada", "Xena", "Xavier")],
    "blob": lambda s: [blob(s, name) for name in ("Ada", "Xavier")],
    "export": lambda s: list(exported(s)),
    "algorithm": lambda s: [
        s.algorithm(name).to_dict() for name in ("degrees", "pagerank", "connected_components")
    ],
    "diff": lambda s: [
        [list(s.diff(ref)), s.diff(ref).summary()] for ref in ("main", "main~1", "main~3", "t1")
    ],
    "history": lambda s: [list(s.history("Person", n)) for n in ("Ada", "Xena", "Xavier")],
}
ASKS_FOR_NAMES = {"type", "view"}


def calls(kind: type) -> dict[str, Call]:
    return TABLES[kind] | {name: call for name, call in READS.items() if name in TABLES[kind]}


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
def test_every_public_method_is_looked_at(kind: type) -> None:
    assert public(kind) - ASKS_NOTHING <= calls(kind).keys()


def handle(kind: type, g: Graph, whole: Graph) -> Any:
    if kind is Graph:
        return g
    if kind is Snapshot:
        return g.at("main")
    return g.branch("main") if kind is Branch else g.transaction()


CASES = [(kind, name) for kind in TABLES for name in calls(kind)]
OPENS = {"transaction", "at", "branch", "snapshot", "spark", "maintenance", "recovery", "copy"}
"""What opens another handle, or is for administrators, who have the files."""
MAINTAINS = {"verify", "optimize", "cleanup", "format"}
"""Whoever maintains a graph is told which types there are, and how large."""


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda one: getattr(one, "__name__", one))
def test_nothing_hidden_is_told(whole: Graph, kind: type, name: str) -> None:
    if name in OPENS | MAINTAINS:
        return
    g = whole.acting(EVE, RULES)
    try:
        found = calls(kind)[name](handle(kind, g, whole))
        if name in ("scan", "query") and kind is Transaction:
            found = [found]
        text = told(found)
    except (Denied, NotFound, EngineMissing, OmnigraphError) as error:
        text = str(error) + repr(error.to_dict())
    wrong = [mark for mark in MARKS if mark in text]
    assert not wrong, text


def test_the_same_calls_do_tell_whoever_sees_all(fresh: Graph) -> None:
    """So that the marks are there to be found."""
    for name, call in READS.items():
        if name == "explain":
            continue
        try:
            text = told(call(fresh.at("main")))
        except OmnigraphError as error:
            text = str(error)
        assert any(mark in text for mark in MARKS), name


def test_counts_are_of_what_is_seen(fresh: Graph) -> None:
    g = fresh.acting(EVE, RULES)
    assert [g.count(name) for name in ("Person", "Knows", "In", "Team")] == [3, 1, 1, 1]
    assert [g.at("t1").count(name) for name in ("Person", "Knows", "In")] == [2, 1, 1]
    assert set(g.types()) == {"Person", "Team", "In", "Knows"}
    rows = {row["table_key"]: row["row_count"] for row in g.manifest().to_pylist()}
    assert rows.get("node:Person") == 0
    assert "node:Zebra" not in rows
    assert all("node:Person" not in commit.statistics for commit in g.log())
    assert "Zebra" not in g.schema


@pytest.mark.parametrize("type", ["Person", "Knows", "In"])
def test_who_sees_a_part_does_not_write_the_type(fresh: Graph, type: str) -> None:
    g = fresh.acting(EVE, RULES)
    row = {"name": "N", "hush": False} if type == "Person" else {"src": "Ada", "dst": "Bob"}
    for call in (
        lambda: g.load([row], type=type),
        lambda: g.run(lambda tx: tx.upsert(type, row)),
        lambda: g.run(lambda tx: tx.delete(type, where=None)),
        lambda: g.mutate(f"delete {type} where true"),
        lambda: g.merge("other"),
        lambda: g.restore("main~1"),
        lambda: g.revert("main"),
        lambda: g.apply_schema(SCHEMA + "node More { x: String? }"),
        lambda: g.algorithm("degrees", write_to="rank"),
        lambda: g.query("match { $p: Person } return { $p }", engine="spark"),
    ):
        with pytest.raises(Denied):
            call()


def test_what_is_seen_wholly_is_written(fresh: Graph) -> None:
    g = fresh.acting(EVE, RULES)
    assert g.mutate('insert Team { name: "Green" }').counts["Team"].inserted == 1
    with pytest.raises(Denied):  # it would take edges that are not seen
        g.mutate('delete Team where name = "Blue"')
    with pytest.raises(NotFound):
        g.run(lambda tx: tx.append("Zebra", {"name": "Zoe"}))


def test_a_rule_holds_for_the_past_of_a_type_that_was_renamed() -> None:
    with omnigraph.init("memory://renamed-past", schema="node Old { name: String @key }") as g:
        with g.transaction() as tx:
            tx.append("Old", {"name": "Xena"})
        g.apply_schema('node New @rename_from("Old") { name: String @key }')

        class ByName(Rules):
            def rows(self, caller: Any, kind: Any, type: Any) -> Any:
                return NO_ROW if kind.name == "New" else EVERY_ROW

        eve = g.acting(EVE, ByName({}))
        assert eve.types() == []
        assert eve.at("main~1").types() == []
        assert g.at("main~1").types() == ["Old"]
