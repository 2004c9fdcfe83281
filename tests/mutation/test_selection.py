"""How the rows of a condition are found: by lookups that read nothing else, or by a scan that gives
the same rows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.engine.mutation.result import MutationResult
from tests.mutation.world import new_graph, rows

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  score: F64?  pad: String? }
node Slot { row: I32  column: I64  held: U64?  @key(row, column) }
node Doc { title: String @key  body: Blob?  n: I64? }
edge Knows: Person -> Person { since: I32? }
edge Tied: Person -> Person { n: I64?  @key(src, dst) }
"""
PEOPLE = 3000


@pytest.fixture(scope="module")
def g() -> Graph:
    """Every test leaves it as it was, or changes what no other test looks at."""
    g = new_graph(SCHEMA, folding="off")
    numbers = np.arange(PEOPLE)
    with g.transaction() as tx:
        tx.append(
            "Person",
            pa.table(
                {
                    "name": [f"p{n}" for n in numbers],
                    "age": pa.array(numbers % 90, pa.int32()),
                    "email": [f"e{n}@x" for n in numbers],
                    "score": numbers / 7,
                    "pad": ["x" * 200] * PEOPLE,
                }
            ),
        )
        hub = pa.table({"src": ["p0"] * PEOPLE, "dst": [f"p{n}" for n in numbers]})
        tx.append("Knows", hub)
        tx.append("Slot", pa.table({"row": pa.array(numbers % 50, pa.int32()), "column": numbers}))
    g.mutate('update Person set { age: age } where name = "p0"')  # what is known once is known
    return g


def read(g: Graph, text: str, **params: Any) -> MutationResult:
    return g.mutate(text, params=params)


@pytest.mark.parametrize(
    "where",
    [
        'name = "p17"',
        '"p17" = name',
        '@id = "p17"',
        'name in ["p17"]',
        '@id in ["p17", "nobody"]',
        'email = "e17@x"',
        'name = "p17" and age >= 0 and score < 1.0e9',
        'lower(name) = "p17" and name = "p" + toString(10 + 7)',
    ],
)
def test_an_update_by_id_key_or_unique_value_reads_the_head_and_its_row(
    g: Graph, where: str
) -> None:
    text = f"update Person set {{ age: 17 }} where {where}"
    read(g, text)  # the lookup of a unique column is built once
    result = read(g, text)
    assert result.nodes == 1
    assert result.io.reads <= 3, result.io.counts
    assert result.io.read_bytes < 100_000


def test_what_is_not_there_is_known_without_reading(g: Graph) -> None:
    for where in ('name = "nobody"', '@id = "nobody"', 'name in ["nobody"]', "@id in []"):
        result = read(g, f"delete Person where {where}")
        assert (result.nodes, result.io.reads, result.io.writes) == (0, 1, 0), where


def test_a_delete_by_id_reads_no_row() -> None:
    g = new_graph("node N { k: String @key  pad: String? }\n", folding="off")
    with g.transaction() as tx:
        tx.append("N", [{"k": f"k{n}", "pad": "x" * 1000} for n in range(300)])
    g.mutate('delete N where k = "k0"')
    result = g.mutate('delete N where k = "k1"')
    assert result.nodes == 1
    assert {purpose for _, purpose in result.io.counts} & {"scan", "take"} == set()


def test_a_composite_key_is_looked_up_in_any_order_and_width(g: Graph) -> None:
    for where in ("row = 7 and column = 57", "57 = column and 7 = row"):
        result = read(g, f"update Slot set {{ held: 5 }} where {where}")
        assert result.nodes == 1
    assert read(g, "delete Slot where row = 3000000000 and column = 1").nodes == 0
    assert read(g, "update Slot set { held: 6 } where row = 7 and column = 57.0").nodes == 1
    assert read(g, "update Slot set { held: 7 } where row = 7").nodes == PEOPLE // 50


def test_thousands_of_ids_are_found_at_once(g: Graph) -> None:
    chosen = [f"p{n}" for n in range(1, PEOPLE, 2)]
    random.Random(7).shuffle(chosen)
    update = "query q($ids: [String]) { update Person set { age: age + 1 } where @id in $ids }"
    before = dict(rows(g, "Person", "name", "age"))
    assert read(g, update, ids=[*chosen, "nobody", chosen[0]]).nodes == len(chosen)
    after = dict(rows(g, "Person", "name", "age"))
    picked = set(chosen)
    assert after == {name: age + (name in picked) for name, age in before.items()}
    rest = (
        "query q($ids: [String]) { update Person set { pad: name } where @id in $ids and age < 3 }"
    )
    young = {name for name in picked if after[name] < 3}
    assert read(g, rest, ids=chosen).nodes == len(young)
    pads = {name for name, pad in rows(g, "Person", "name", "pad") if pad == name}
    assert pads == young


def test_the_edges_of_a_hub_are_updated_and_deleted_by_their_source(g: Graph) -> None:
    assert read(g, 'update Knows set { since: 5 } where from = "p0"').edges == PEOPLE
    assert read(g, 'update Knows set { since: 6 } where from = "p0" and to = "p9"').edges == 1
    assert read(g, 'update Knows set { since: 7 } where to = "p9" and since = 6').edges == 1
    assert sorted(rows(g, "Knows", "since"))[-2:] == [5, 7]
    assert read(g, 'delete Knows where from in ["p0", "p1"] and since = 5').edges == PEOPLE - 1


CONDITIONS = [
    "age < 10",
    "age <= 10 and age != 3",
    "not (age > 5)",
    "10 > age",
    "age in [1, 2, 77]",
    "age is null or score > 400.0",
    "score > 100.0 and age < 20",
    "age % 7 = 3",
    'name starts_with "p1" and age < 50',
    'name < "p2"',
    "email is not null and length(name) = 3 and age = 3",
    "age = 3.0",
    "age < 2147483648",
    "true",
    "false",
    "null",
]


@pytest.mark.parametrize("where", CONDITIONS)
def test_stored_and_pending_rows_are_judged_alike(g: Graph, where: str) -> None:
    """Stored rows are filtered by Lance as far as it goes, pending ones by the condition."""
    stored = read(g, f"update Person set {{ pad: null }} where {where}").nodes
    both = read(
        g,
        "update Person set { age: age } where age >= 0 or age is null "
        f"update Person set {{ pad: null }} where {where}",
    )
    assert both.nodes == PEOPLE + stored


def test_blobs_survive_updates_of_other_properties_however_rows_are_found() -> None:
    g = new_graph(SCHEMA)
    with g.transaction() as tx:
        tx.append(
            "Doc",
            [{"title": f"t{n}", "body": bytes([n % 256]) * 50, "n": n} for n in range(1200)],
        )
    for where in ('title = "t7"', "n = 8", "n >= 0"):
        assert g.mutate(f"update Doc set {{ n: n + 1 }} where {where}").nodes
    for number in (7, 8, 1199):
        blob = g.blob("Doc", f"t{number}", "body")
        assert blob is not None
        assert blob.read() == bytes([number % 256]) * 50


def test_properties_that_were_renamed_are_found_under_their_new_name() -> None:
    g = new_graph(SCHEMA)
    g.mutate('insert Person { name: "a", age: 1, email: "e" } insert Slot { row: 1, column: 2 }')
    renamed = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")').replace(
        "email: String?", 'mail: String? @rename_from("email")'
    )
    g.apply_schema(renamed)
    g.mutate('insert Person { name: "b", years: 2, mail: "f" }')
    assert g.mutate("update Person set { years: years + 1 } where years < 10").nodes == 2
    assert g.mutate('update Person set { years: 0 } where mail = "e"').nodes == 1
    assert rows(g, "Person", "name", "years") == [("a", 0), ("b", 3)]
