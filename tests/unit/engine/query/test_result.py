"""A result is worked out when it is asked for, as far as it is asked for, in every form."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import duckdb
import networkx as nx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.engine.query.result import Result
from omnigraph.errors import InvalidArgument, NotOneRow, ValueOutOfRange
from tests.unit.engine.query.people import crowd, fill, graph, reopened

NAMES = "match { $p: Person } return { $p.name, $p.age }"


@pytest.fixture(scope="module")
def people() -> Iterator[Graph]:
    with graph() as g:
        fill(g, crowd(50, 100))
        yield g


# Laziness


def test_nothing_is_read_before_rows_are_asked_for(people: Graph) -> None:
    with reopened(people) as g:
        bare = g.snapshot().io.reads
        result = g.query(NAMES)
        opening = result.io.reads
        assert result.schema.names == ["p.name", "p.age"]
        assert result.commit.id == g.snapshot().commit.id
        assert "scan Person" in result.explain()
        assert repr(result) == "<Result p.name: string, p.age: int64>"
        assert result.io.reads == opening <= bare + 1  # the schema of the version
        assert not any(entry.purpose in ("scan", "columns") for entry in result.io.counts)
        assert len(result) == 50
        assert result.io.reads > opening
        assert repr(result).startswith("<Result 50 rows")


def test_a_limit_stops_the_search_early() -> None:
    with graph() as g:
        rows = crowd(6000, 6000)
        fill(g, rows)
        text = "match { $p: Person  $p.age >= 0  $p knows $q } return { $q.name } limit 3"
        shown = g.query(text).explain(analyze=True)
        (scan,) = [line for line in shown.splitlines() if "scan Person" in line]
        assert "(1,024 rows" in scan  # the first small batch
        assert len(g.query(text)) == 3


def test_who_stops_reading_stops_the_search(people: Graph) -> None:
    seen = iter(people.query(NAMES))
    assert set(next(seen)) == {"p.name", "p.age"}
    seen.close()  # type: ignore[attr-defined]


# Reading again


def test_a_result_that_was_kept_can_be_read_again(people: Graph) -> None:
    result = people.query(NAMES)
    first = result.to_pylist()
    reads = result.io.reads
    assert list(result) == first == [*result]
    assert result.to_arrow() is result.to_arrow()
    assert pa.table(result).num_rows == len(result) == 50
    assert sum(batch.num_rows for batch in result.batches()) == 50
    assert result.io.reads == reads


def test_a_result_that_streamed_by_says_so(people: Graph) -> None:
    result = people.query(NAMES)
    assert sum(batch.num_rows for batch in result.batches()) == 50
    for again in (result.to_arrow, result.to_pylist, lambda: list(result.batches())):
        with pytest.raises(InvalidArgument, match="to_arrow"):
            again()


def test_one_is_the_only_row(people: Graph) -> None:
    text = 'match { $p: Person {name: "p7"} } return { $p.name }'
    assert people.query(text).one() == {"p.name": "p7"}
    with pytest.raises(NotOneRow, match="gives 50"):
        people.query(NAMES).one()
    with pytest.raises(NotOneRow, match="gives 0"):
        people.query(text.replace("p7", "nobody")).one()


def test_a_result_is_true_whatever_it_holds_and_asking_runs_nothing(people: Graph) -> None:
    found = people.query('match { $p: Person {name: "nobody"} } return { $p.name }')
    assert found
    assert not found._begun
    assert len(found) == 0
    assert found


# Every form


def test_every_tool_takes_it(people: Graph) -> None:
    wanted = sorted((f"p{n}", n) for n in range(50))

    def ask() -> Result:
        return people.query(NAMES)

    def rows(table: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in table.to_pylist())

    assert rows(pa.table(ask())) == wanted
    assert rows(pa.RecordBatchReader.from_stream(ask()).read_all()) == wanted
    assert sorted(pl.DataFrame(ask()).rows()) == wanted
    assert sorted(ask().to_polars().rows()) == wanted
    frame = ask().to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert sorted(frame.itertuples(index=False, name=None)) == wanted
    given = ask()
    assert given.schema.names == ["p.name", "p.age"]
    with duckdb.connect() as connection:
        connection.register("given", pa.RecordBatchReader.from_stream(given))
        assert sorted(connection.sql("SELECT * FROM given").fetchall()) == wanted


def test_an_error_on_the_way_is_ours_in_every_form(people: Graph) -> None:
    text = "match { $p: Person } return { $p.age * 4611686018427387904 as x }"
    for read in (Result.to_arrow, Result.to_pylist, Result.to_pandas, list, len, Result.one):
        with pytest.raises(ValueOutOfRange):
            read(people.query(text))


def test_a_notebook_shows_values_as_text() -> None:
    with graph() as g:
        fill(g, {"Person": [{"name": "<script>alert('x')</script>", "city": "a & b"}]})
        shown = g.query("match { $p: Person } return { $p.name, $p.age, $p.city }")._repr_html_()
        assert "<script>" not in shown
        assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in shown
        assert "a &amp; b" in shown
        assert shown.count("null") == 1


def test_a_notebook_shows_the_first_rows_and_how_many_more(people: Graph) -> None:
    shown = people.query(NAMES)._repr_html_()
    assert shown.count("<tr>") == 21
    assert "20 of 50 rows" in shown
    assert "more" not in people.query(NAMES + " limit 20")._repr_html_()


# Types


TYPES = """
node All {
  name: String @key
  flag: Bool?  i: I32?  l: I64?  ui: U32?  ul: U64?  f: F32?  d: F64?
  day: Date?  at: DateTime?  kind: enum(x, y)?
  texts: [String]?  days: [Date]?  bools: [Bool]?  numbers: [U64]?
  photo: Blob?  v: Vector(2)?
}
edge To: All -> All { weight: F32? }
"""
FIELDS = [
    "name", "flag", "i", "l", "ui", "ul", "f", "d", "day", "at", "kind",
    "texts", "days", "bools", "numbers",
]  # fmt: skip
EXPECTED = [
    pa.string(), pa.bool_(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(),
    pa.float64(), pa.date32(), pa.timestamp("ms", "UTC"), pa.string(), pa.list_(pa.string()),
    pa.list_(pa.date32()), pa.list_(pa.bool_()), pa.list_(pa.uint64()),
]  # fmt: skip
FULL = {
    "name": "full", "flag": True, "i": -1, "l": 2**62, "ui": 2**32 - 1, "ul": 2**64 - 1, "f": 0.5,
    "d": 0.1, "day": date(2024, 2, 29), "at": datetime(2024, 2, 29, 1, 2, 3, 4000, UTC),
    "kind": "y", "texts": ["a", ""], "days": [date(1970, 1, 1)], "bools": [],
    "numbers": [2**64 - 1],
}  # fmt: skip


@pytest.fixture(scope="module")
def everything() -> Iterator[Graph]:
    with graph(TYPES) as g:
        fill(g, {"All": [FULL | {"photo": b"x", "v": [1.0, 2.0]}, {"name": "bare"}]})
        yield g


SHAPES = [
    "match {{ $x: All {where} }} return {{ {columns} }}",
    "match {{ $x: All {where} }} return distinct {{ {columns} }}",
    "match {{ $x: All {where} }} return {{ {columns}, count($x) as n }}",
    "match {{ $x: All {where} }} return {{ {columns} }} order {{ $x.name }}",
    "match {{ $x: All {where} }} return {{ {columns} }} limit 5",
    "match {{ $x: All  optional {{ $x to $y }} {where} }} return {{ {columns}, $y }}",
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("query_rows", [0, 1000])
def test_a_result_has_its_types_with_rows_and_without(
    everything: Graph, shape: str, query_rows: int
) -> None:
    columns = ", ".join(f"$x.{name}" for name in FIELDS)
    with reopened(everything, query_rows=query_rows) as g:
        full = g.query(shape.format(where="", columns=columns))
        empty = g.query(shape.format(where='$x.name = "nobody"', columns=columns))
        for result, rows in ((full, 2), (empty, 0)):
            table = result.to_arrow()
            assert table.schema == result.schema
            assert table.num_rows == rows
            table.validate(full=True)
            assert [kind_of(field.type) for field in table.schema][: len(FIELDS)] == EXPECTED
            assert [field.nullable for field in table.schema][: len(FIELDS)] == [
                name != "name" for name in FIELDS
            ]
            assert result.to_polars().height == len(result.to_pandas()) == rows
        row = next(row for row in full.to_pylist() if row["x.name"] == "full")
        assert {name: row[f"x.{name}"] for name in FIELDS} == FULL


def kind_of(kind: pa.DataType) -> pa.DataType:
    """Whether items may be null is not of the type."""
    return pa.list_(kind.value_type) if pa.types.is_list(kind) else kind


def test_an_entity_is_an_object_without_blobs_and_vectors(everything: Graph) -> None:
    result = everything.query('match { $x: All {name: "full"} } return { $x }')
    assert result.one() == {"x": {"@id": "full"} | FULL}
    assert "photo" not in str(result.schema)


# As a network


def test_a_match_is_a_network_of_what_it_bound(people: Graph) -> None:
    text = 'match { $p: Person {name: "p3"}  $p $k:knows $q } return { count($k) as n }'
    result = people.query(text)
    network = result.to_networkx()
    count = result.one()["n"]
    assert isinstance(network, nx.MultiDiGraph)
    assert network.number_of_edges() == count
    assert network.nodes["Person", "p3"] == {"name": "p3", "age": 3, "city": None}
    for source, _, key, data in network.edges(keys=True, data=True):
        assert source == ("Person", "p3")
        assert data == {"@type": "Knows", "since": int(key[1:])}


def test_a_network_takes_properties_of_any_name() -> None:
    schema = """
    node Person { name: String @key  node_for_adding: I64?  type: String?  self: I64? }
    edge Knows: Person -> Person { type: String?  key: I64?  u_for_edge: I64?  attr: I64? }
    """
    with graph(schema) as g:
        fill(g, {
            "Person": [{"name": "a", "node_for_adding": 1, "type": "t", "self": 2}],
            "Knows": [{"id": "e", "from": "a", "to": "a", "type": "x", "key": 3, "u_for_edge": 4}],
        })  # fmt: skip
        network = g.query("match { $a: Person  $a $k:knows $b } return { $a }").to_networkx()
        assert network.nodes["Person", "a"]["node_for_adding"] == 1
        edge = network.edges[("Person", "a"), ("Person", "a"), "e"]
        assert edge == {"@type": "Knows", "type": "x", "key": 3, "u_for_edge": 4, "attr": None}


def test_a_network_of_nothing_is_empty(people: Graph) -> None:
    text = 'match { $p: Person {name: "nobody"}  optional { $p $k:knows $q } } return { $q }'
    assert len(people.query(text).to_networkx()) == 0


def test_a_network_keeps_to_order_offset_and_limit(people: Graph) -> None:
    text = (
        "match { $p: Person  $p $k:knows $q } return { $p.name as p, $q.name as q, $k.since as s }"
    )
    result = people.query(text + " order { s desc } offset 2 limit 3")
    network = result.to_networkx()
    found = {(a[1], b[1], d["since"]) for a, b, d in network.edges(data=True)}
    assert found == {(row["p"], row["q"], row["s"]) for row in result}
    assert network.number_of_edges() == 3
    assert people.query(text + " limit 4").to_networkx().number_of_edges() == 4
    busy = "match { $p: Person } return { $p.name as p } order { count { $p knows $q } } limit 5"
    nodes = people.query(busy).to_networkx().nodes
    assert {name for _, name in nodes} == {row["p"] for row in people.query(busy)}


def test_optional_and_distinct_and_order_do_not_change_the_network(people: Graph) -> None:
    text = "match { $p: Person  optional { $p $k:knows $q } } return distinct { $p.city }"
    network = people.query(text + " limit 1").to_networkx()
    assert (network.number_of_nodes(), network.number_of_edges()) == (50, 100)
