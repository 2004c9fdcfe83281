"""Lookups against a plain dictionary, over random histories of one table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine import key_index
from omnigraph.engine.cache import Cache
from omnigraph.engine.lookup import Lookups
from omnigraph.store import commits
from omnigraph.store.open_tables import Tables
from omnigraph.store.roots import Root
from omnigraph.store.staging import StagedDeletes, stage_deletes, stage_rows
from omnigraph.store.tables import ADDRESS, Table
from omnigraph.telemetry import Ledger

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), ("age", pa.int64())])
IDS = [f"k{n}" for n in range(12)]

Change = tuple[list[str], list[str]]
CHANGES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(IDS), unique=True, max_size=5),
        st.lists(st.sampled_from(IDS), unique=True, max_size=5),
    ),
    min_size=1,
    max_size=12,
)


def write(table: Table, add: list[str], remove: list[str]) -> tuple[Table, pa.Table, np.ndarray]:
    """Removes rows by id, then adds rows."""
    held = rows_of(table)
    dead = np.array(sorted(held[i] for i in remove if i in held), dtype=np.uint64)
    rows = pa.table({"id": add, "age": [1] * len(add)}, schema=SCHEMA)
    deletes = stage_deletes(table, dead, Ledger()) if len(dead) else StagedDeletes()
    fragments = stage_rows(table, rows, Ledger()).fragments if add else ()
    return commits.change(table, table.version, deletes, fragments, Ledger()), rows, dead


def rows_of(table: Table) -> dict[str, int]:
    held: dict[str, int] = {}
    for batch in table.scan(["id"], Ledger(), addresses=True):
        held |= dict(
            zip(batch.column("id").to_pylist(), batch.column(ADDRESS).to_pylist(), strict=True)
        )
    return held


def found(lookups: Lookups, table: Table) -> dict[str, int]:
    positions, addresses = lookups.find(table, ("id",), IDS, Ledger())
    return {IDS[p]: int(a) for p, a in zip(positions, addresses, strict=True)}


@pytest.fixture
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    directory = tmp_path_factory.mktemp("lookup")
    return new_table(directory)


def new_table(directory: Path) -> Table:
    root = Root(uri=str(directory), directory=directory)
    return Tables(root).create(f"nodes/{np.random.default_rng().integers(2**60)}", SCHEMA, Ledger())


@pytest.mark.parametrize("tail", [2, 4096])
@given(changes=CHANGES, carry=st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_derived_index_finds_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, tail: int, changes: list[Change], carry: list[bool]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "_TAIL", tail)
        lookups = Lookups(Cache(10**8), rows=10**6)
        table = new_table(tmp_path_factory.mktemp("derived"))
        found(lookups, table)
        for (add, remove), told in zip(changes, carry, strict=False):
            gone = [i for i in rows_of(table) if i in remove or i in add]
            new, rows, dead = write(table, add, gone)
            if told:
                lookups.carry(table, new, rows, dead)
            assert found(lookups, new) == rows_of(new)
            table = new


@given(left=CHANGES, right=CHANGES)
def test_two_branches_of_one_table_do_not_mix(
    tmp_path_factory: pytest.TempPathFactory, left: list[Change], right: list[Change]
) -> None:
    lookups = Lookups(Cache(10**8), rows=10**6)
    base, _, _ = write(new_table(tmp_path_factory.mktemp("fork")), ["k0", "k1"], [])
    tips = [base, base]
    for changes in zip(left, right, strict=False):
        for side, (add, remove) in enumerate(changes):
            gone = [i for i in rows_of(tips[side]) if i in remove or i in add]
            tips[side], _, _ = write(tips[side], add, gone)
            assert found(lookups, tips[side]) == rows_of(tips[side])


def test_a_table_too_large_to_hold_is_asked_through_lance(table: Table) -> None:
    new, _, _ = write(table, ["k1", "k2"], [])
    new, _, _ = write(new, ["k3"], ["k1"])
    assert found(Lookups(Cache(10**8), rows=1), new) == rows_of(new)


def test_a_lookup_after_a_commit_of_ours_reads_nothing(table: Table) -> None:
    lookups = Lookups(Cache(10**8), rows=10**6)
    one, _, _ = write(table, ["k1", "k2"], [])
    found(lookups, one)
    two, rows, dead = write(one, ["k3", "k1"], ["k1"])
    lookups.carry(one, two, rows, dead)
    ledger = Ledger()
    positions, _ = lookups.find(two, ("id",), IDS, ledger)
    assert {IDS[p] for p in positions} == {"k1", "k2", "k3"}
    assert ledger.reads == 0


def test_values_that_share_a_hash_are_told_apart(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_index, "hash_texts", lambda _, count: np.zeros(count, np.uint64))
    new, _, _ = write(table, ["k1", "k2", "k3"], [])
    assert found(Lookups(Cache(10**8), rows=10**6), new) == rows_of(new)
