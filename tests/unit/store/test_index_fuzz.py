"""Index segments over tables that change: indexed answers equal unindexed ones, and each rule that
is left out is caught (hazards 1, 3 and 14)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.query import CombinedFieldsQuery, MatchQuery

from omnigraph.errors import Conflict, Corrupt
from omnigraph.model.indexes import IndexKind, index_name
from omnigraph.store import commits, indexes
from omnigraph.store.fragments import KnownSegment
from omnigraph.store.indexes import (
    Segment,
    files_of,
    list_segments,
    replace_segments,
    stage_segment,
)
from omnigraph.store.open_tables import Tables
from omnigraph.store.roots import parse_root
from omnigraph.store.staging import (
    StagedDeletes,
    shared_fragments,
    stage_compaction,
    stage_deletes,
    stage_rows,
)
from omnigraph.store.tables import ADDRESS, Table
from omnigraph.telemetry import Ledger
from tests.search.tables import allowing, allowing_fragments

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("number", pa.int64()),
        ("color", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("bio", pa.string()),
        ("vec", pa.list_(pa.float32(), 2)),
    ]
)
COLORS = ["red", "green", "blue"]
WORDS = ["alpha", "beta", "gamma", "delta"]
INDEXES: dict[str, IndexKind] = {
    "id": "BTREE",
    "number": "BTREE",
    "color": "BITMAP",
    "tags": "LABEL_LIST",
    "bio": "INVERTED",
    "vec": "IVF_FLAT",
}


@dataclass
class Fuzz:
    """One table, what it should hold, and a source of chance."""

    path: Path
    seed: int
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    named: int = 0
    checks: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.ledger = Ledger()
        self.table = self.create()

    def create(self) -> Table:
        return Tables(parse_root(self.path)).create("t", SCHEMA, self.ledger)

    # Changes, each through our own door

    def append(self) -> None:
        rows = [self._row(self._fresh()) for _ in range(self.random.randint(1, 4))]
        self.table = self._appended(self.table, rows)
        self._know(rows)

    def _appended(self, table: Table, rows: list[dict[str, Any]]) -> Table:
        staged = stage_rows(table, pa.Table.from_pylist(rows, schema=SCHEMA), self.ledger)
        return commits.append(table, staged.fragments, staged.fields, self.ledger)

    def change(self) -> None:
        chosen = self._some()
        if not chosen:
            return
        rows = [self._row(name) for name in chosen]
        deletes = self._deletes(chosen)
        staged = stage_rows(self.table, pa.Table.from_pylist(rows, schema=SCHEMA), self.ledger)
        self.table = self.commit_change(deletes, staged.fragments)
        self._know(rows)

    def commit_change(self, deletes: StagedDeletes, fragments: tuple[str, ...]) -> Table:
        return commits.change(self.table, self.table.version, deletes, fragments, self.ledger)

    def delete(self) -> None:
        chosen = self._some()
        if not chosen:
            return
        deletes = self._deletes(chosen)
        self.table = commits.change(self.table, self.table.version, deletes, (), self.ledger)
        for name in chosen:
            del self.rows[name]

    def delete_the_newest_fragment(self) -> None:
        if len(self.table.marks) < 2:
            return
        newest = max(self.table.marks)
        gone = [n for n, address in self._addresses().items() if address >> 32 == newest]
        deletes = self._deletes(gone)
        self.table = commits.change(self.table, self.table.version, deletes, (), self.ledger)
        for name in gone:
            del self.rows[name]

    def overwrite(self) -> None:
        rows = [self._row(self._fresh()) for _ in range(3)]
        staged = stage_rows(self.table, pa.Table.from_pylist(rows, schema=SCHEMA), self.ledger)
        self.table = commits.overwrite(
            self.table, self.table.version, staged.fragments, self.ledger
        )
        self.rows.clear()
        self._know(rows)

    def compact(self) -> None:
        """Any fragments together: which segments cover them makes no difference."""
        numbers = list(self.table.marks)
        count = self.random.randint(1, len(numbers)) if numbers else 0
        if count:
            chosen = sorted(self.random.sample(numbers, count))
            self.table = self.commit_rewrite(self.staged(chosen))

    def staged(self, fragments: list[int] | None = None) -> Any:
        chosen = list(self.table.marks) if fragments is None else fragments
        return stage_compaction(self.table, [chosen], self.ledger)

    def commit_rewrite(self, groups: Any) -> Table:
        return commits.rewrite(self.table, groups, self.ledger)

    def index(self) -> None:
        column, kind = self.random.choice(list(INDEXES.items()))
        known = self._segments(column, kind)
        covered = frozenset[int]().union(*(segment.fragments for segment in known))
        missing = [number for number in self.table.marks if number not in covered]
        if missing:
            count = self.random.randint(1, len(missing))
            segment = self._built(column, kind, self.random.sample(missing, count))
            if segment is not None:
                self.table = self.commit_segment(segment)

    def merge_segments(self) -> None:
        """Some segments, and perhaps what none covers yet, become one; or just go."""
        column, kind = self.random.choice(list(INDEXES.items()))
        known = self._segments(column, kind)
        if not known:
            return
        chosen = self.random.sample(known, self.random.randint(1, len(known)))
        others = frozenset[int]().union(*(s.fragments for s in known if s not in chosen))
        wanted = {number for segment in chosen for number in segment.fragments}
        wanted |= set(self.random.sample(list(self.table.marks), len(self.table.marks) // 2))
        fragments = [number for number in self.table.marks if number in wanted - others]
        segment = self._built(column, kind, fragments) if fragments else None
        self.table = replace_segments(
            self.table,
            files_of(self.table, fragments),
            [] if segment is None else [segment],
            self.ledger,
            removed=[s.uuid for s in chosen],
        )

    def adopt(self) -> None:
        """Rows that another branch appended come in by metadata alone."""
        fork = self.table
        rows = [self._row(self._fresh()) for _ in range(2)]
        theirs = self._appended(fork, rows)
        self.append()
        known = [mark.files[0] for mark in fork.marks.values()]
        shared = list(shared_fragments(theirs, self.table, known, SCHEMA.names, ()))
        self.table = commits.append(
            self.table, [text for _, text in shared], theirs.fields, self.ledger
        )
        self._know(rows)

    def _segments(self, column: str, kind: IndexKind) -> list[KnownSegment]:
        return [s for s in list_segments(self.table) if s.name == index_name(column, kind)]

    def _built(self, column: str, kind: IndexKind, fragments: list[int]) -> Segment | None:
        if kind == "IVF_FLAT" and sum(self.table.marks[n].rows for n in fragments) < 2:
            return None  # fewer rows than partitions cannot be trained
        return stage_segment(self.table, column, kind, fragments, self.ledger, partitions=2)

    def commit_segment(self, segment: Segment) -> Table:
        return replace_segments(
            self.table, files_of(self.table, segment.fragment_ids), [segment], self.ledger
        )

    # Looking

    def check(self) -> None:
        self.checks += 1
        for question, expected in self._questions():
            for indexed in (True, False)[: 2 if self.checks % 10 == 0 else 1]:
                found = self.table.handle.scanner(
                    columns=["id"], use_scalar_index=indexed, filter=question
                ).to_table()
                assert sorted(found["id"].to_pylist()) == expected, (question, indexed)
        for word in WORDS:
            found = self.table.handle.scanner(
                columns=["id", "_score"], full_text_query={"columns": ["bio"], "query": word}
            ).to_table()
            expected = self._where(partial(_holds, "bio", word))
            assert sorted(found["id"].to_pylist()) == expected, word
        if self.random.random() < 0.5:
            self._check_allowed(sorted(self.rows), allowing_fragments(self.table.marks))
        else:
            at = self._addresses()
            some = self.random.sample(sorted(at), self.random.randint(0, len(at)))
            self._check_allowed(some, allowing(at[name] for name in some))
        assert self.table.rows == len(self.rows)

    def _check_allowed(self, names: list[str], allowed: Any) -> None:
        """An allowlist of what lives gives exactly the rows that match, and as many as there are
        places: nothing dead takes one (hazard 2)."""
        word = self.random.choice(WORDS)
        expected = sorted(name for name in names if word in self.rows[name]["bio"].split())
        queries = [MatchQuery(word, "bio")]
        if self._segments("bio", "INVERTED"):
            queries.append(CombinedFieldsQuery(word, ["bio"]))
        places = max(1, len(expected) // 2)
        for query in queries:
            assert self._matching(query, allowed) == expected, (word, query)
            found = self._matching(query, allowed, limit=places)
            assert len(found) == min(places, len(expected)), (word, query)
        self._check_nearest(names, allowed)

    def _matching(self, query: Any, allowed: Any, **options: Any) -> list[str]:
        found = self.table.handle.scanner(
            columns=["_rowid", "_score"],
            full_text_query=query,
            row_addr_allowlist=self.allowed(allowed),
            **options,
        ).to_table()
        taken = self.table.handle._take_rows(found["_rowid"].to_pylist(), columns=["id"])
        assert taken.num_rows == found.num_rows, "a row that is gone was found"
        return sorted(taken["id"].to_pylist())

    def allowed(self, rows: Any) -> Any:
        return rows

    def _check_nearest(self, names: list[str], allowed: Any) -> None:
        """With every partition probed and an allowlist of what lives the index is exact."""
        wanted = min(3, len(names))
        if not wanted:
            return
        angle = self.random.random() * 6.28
        query = np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)
        options = {"column": "vec", "q": query, "k": wanted, "nprobes": 64, "metric": "cosine"}
        found = self.table.handle.scanner(
            columns=["id", "_distance"],
            nearest=options,
            row_addr_allowlist=self.allowed(allowed),
        ).to_table()
        distances = sorted(1 - float(np.dot(query, self.rows[name]["vec"])) for name in names)
        assert np.allclose(found["_distance"].to_pylist(), distances[:wanted], atol=2e-6)

    def _questions(self) -> list[tuple[str, list[str]]]:
        some = self.random.sample(sorted(self.rows), min(3, len(self.rows)))
        questions = [(f"id = '{name}'", [name]) for name in some]
        questions += [("number < 2", self._where(lambda row: row["number"] < 2))]
        questions += [(f"number = {n}", self._where(partial(_has, "number", n))) for n in range(4)]
        for color in COLORS:
            questions += [
                (f"color = '{color}'", self._where(partial(_has, "color", color))),
                (f"array_has_any(tags, ['{color}'])", self._where(partial(_holds, "tags", color))),
            ]
        return questions

    def _where(self, condition: Callable[[dict[str, Any]], bool]) -> list[str]:
        return sorted(name for name, row in self.rows.items() if condition(row))

    # Chance

    def step(self) -> None:
        steps = [
            (self.append, 4),
            (self.change, 4),
            (self.delete, 2),
            (self.delete_the_newest_fragment, 1),
            (self.overwrite, 0.2),
            (self.compact, 1.5),
            (self.index, 5),
            (self.merge_segments, 2),
            (self.adopt, 1),
        ]
        (chosen,) = self.random.choices([s for s, _ in steps], [w for _, w in steps])
        chosen()

    def _fresh(self) -> str:
        self.named += 1
        return f"r{self.named}"

    def _row(self, name: str) -> dict[str, Any]:
        return {
            "id": name,
            "number": self.random.randrange(4),
            "color": self.random.choice(COLORS),
            "tags": self.random.sample(COLORS, self.random.randint(0, 3)),
            "bio": " ".join(self.random.sample(WORDS, 2)),
            "vec": _direction(self.random.random() * 6.28),
        }

    def _know(self, rows: list[dict[str, Any]]) -> None:
        self.rows.update({row["id"]: row for row in rows})

    def _some(self) -> list[str]:
        count = self.random.randint(1, 3)
        return self.random.sample(sorted(self.rows), min(count, len(self.rows)))

    def _addresses(self) -> dict[str, int]:
        batches = self.table.scan(["id"], self.ledger, addresses=True)
        return {
            name: address
            for batch in batches
            for name, address in zip(
                batch.column("id").to_pylist(), batch.column(ADDRESS).to_pylist(), strict=True
            )
        }

    def _deletes(self, names: list[str]) -> StagedDeletes:
        known = self._addresses()
        addresses = np.array([known[name] for name in names], dtype=np.uint64)
        return stage_deletes(self.table, addresses, self.ledger)


def _direction(angle: float) -> list[float]:
    return [float(np.float32(np.cos(angle))), float(np.float32(np.sin(angle)))]


def _has(column: str, value: object, row: dict[str, Any]) -> bool:
    return bool(row[column] == value)


def _holds(column: str, value: object, row: dict[str, Any]) -> bool:
    return value in row[column]


def run(fuzz: Fuzz, steps: int, *, look: int = 1) -> None:
    """Checked after every so many steps: what is wrong once stays so for a while."""
    fuzz.append()
    for number in range(steps):
        fuzz.step()
        if number % look == 0:
            fuzz.check()


@pytest.mark.parametrize("seed", range(4))
def test_indexed_answers_equal_unindexed_ones(seed: int, tmp_path: Path) -> None:
    run(Fuzz(tmp_path, seed), 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 134))
def test_indexed_answers_equal_unindexed_ones_for_long(seed: int, tmp_path: Path) -> None:
    run(Fuzz(tmp_path, seed), 300, look=3)


# The same fuzz with one rule left out must find wrong answers: else it proves nothing.


class ReusedIds(Fuzz):
    """Hazard 3: a rewritten fragment gets an id that a segment still covers."""

    def commit_rewrite(self, groups: Any) -> Table:
        from lance import LanceOperation
        from lance.fragment import FragmentMetadata

        taken = set(self.table.marks)
        prepared, added = [], []
        for old, new in groups:
            replaced = [FragmentMetadata.from_json(text) for text in old]
            fresh = [
                FragmentMetadata.from_json(json.dumps(json.loads(text) | {"id": replaced[0].id}))
                for text in new[:1]
            ]
            taken -= {fragment.id for fragment in replaced}
            prepared.append(
                LanceOperation.RewriteGroup(old_fragments=replaced, new_fragments=fresh)
            )
            added += fresh
        operation = LanceOperation.Rewrite(groups=prepared, rewritten_indices=[])
        return commits.commit_operation(self.table, operation, added, self.ledger)


class StableRowIds(Fuzz):
    """Hazard 1: rows that keep their identity over a change, by Lance's own merge_insert."""

    def create(self) -> Table:
        import lance

        handle = lance.write_dataset(
            SCHEMA.empty_table(), str(self.path / "t"), enable_stable_row_ids=True
        )
        return Table(handle, "t", self.path)

    def change(self) -> None:
        from lance import LanceDataset

        chosen = self._some()
        if not chosen:
            return
        rows = [self._row(name) for name in chosen]
        change, _ = (
            self.table.handle.merge_insert("id")
            .when_matched_update_all()
            .execute_uncommitted(pa.Table.from_pylist(rows, schema=SCHEMA))
        )
        handle = LanceDataset.commit(self.table.handle, change, detached=True)
        self.table = Table(handle, self.table.location, self.table.directory)
        self._know(rows)


class Everything(Fuzz):
    """Hazard 2: no allowlist, so that the dead take places."""

    def allowed(self, rows: Any) -> Any:
        return None


@pytest.mark.parametrize("broken", [ReusedIds, StableRowIds, Everything])
def test_the_fuzz_catches_a_rule_that_is_left_out(broken: type[Fuzz], tmp_path: Path) -> None:
    for seed in range(30):
        place = tmp_path / str(seed)
        place.mkdir()
        try:
            run(broken(place, seed), 60)
        except (AssertionError, Corrupt):
            return
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            return
    raise AssertionError("nothing was wrong")


# The door refuses each of these before Lance could accept it (hazards 3, 5, 6 and 14).


@pytest.fixture
def fuzz(tmp_path: Path) -> Fuzz:
    made = Fuzz(tmp_path, 1)
    made.append()
    made.append()
    return made


def names(table: Table) -> list[str]:
    return sorted(n for b in table.scan(["id"], Ledger()) for n in b.column("id").to_pylist())


def test_rows_are_not_appended_twice(fuzz: Fuzz) -> None:
    rows = pa.Table.from_pylist([fuzz._row("once")], schema=SCHEMA)
    staged = stage_rows(fuzz.table, rows, fuzz.ledger)
    table = commits.append(fuzz.table, staged.fragments, staged.fields, fuzz.ledger)
    with pytest.raises(Conflict, match="appended twice"):
        commits.append(table, staged.fragments, staged.fields, fuzz.ledger)


def test_staged_rows_do_not_land_under_columns_that_mean_something_else(fuzz: Fuzz) -> None:
    """Hazard 5: two forks that each add a column give one field id to both."""

    def widened(name: str) -> Table:
        column = pa.schema([pa.field(name, pa.string())])
        return commits.add_columns(fuzz.table, fuzz.table.version, column, None, {}, fuzz.ledger)

    left, right = widened("left"), widened("right")
    wide = SCHEMA.append(pa.field("left", pa.string()))
    rows = pa.Table.from_pylist([fuzz._row("l") | {"left": "x"}], schema=wide)
    staged = stage_rows(left, rows, fuzz.ledger)
    with pytest.raises(Conflict, match="columns of t changed"):
        commits.append(right, staged.fragments, staged.fields, fuzz.ledger)
    plain = stage_rows(
        fuzz.table, pa.Table.from_pylist([fuzz._row("p")], schema=SCHEMA), fuzz.ledger
    )
    assert "p" in names(commits.append(right, plain.fragments, plain.fields, fuzz.ledger))


def test_a_change_lands_only_on_the_version_that_it_was_made_for(fuzz: Fuzz) -> None:
    first, second = sorted(fuzz.rows)[:2]
    base = fuzz.table
    deletes = fuzz._deletes([first])
    moved = commits.change(base, base.version, fuzz._deletes([second]), (), fuzz.ledger)
    stale_ones: list[Callable[[], object]] = [
        lambda: commits.change(moved, base.version, deletes, (), fuzz.ledger),
        lambda: commits.overwrite(moved, base.version, (), fuzz.ledger),
        lambda: commits.add_columns(
            moved, base.version, pa.schema([("z", pa.string())]), None, {}, fuzz.ledger
        ),
    ]
    for stale in stale_ones:
        with pytest.raises(Conflict, match="was staged on version"):
            stale()


def test_a_compaction_does_not_revive_what_was_deleted_meanwhile(fuzz: Fuzz) -> None:
    groups = fuzz.staged()
    first = min(fuzz.rows)
    moved = commits.change(fuzz.table, fuzz.table.version, fuzz._deletes([first]), (), fuzz.ledger)
    with pytest.raises(Conflict, match="changed while it was compacted"):
        commits.rewrite(moved, groups, fuzz.ledger)
    later = fuzz._appended(fuzz.table, [fuzz._row("later")])
    assert names(commits.rewrite(later, groups, fuzz.ledger)) == names(later)


def test_a_rewritten_fragment_gets_an_id_that_was_never_given(fuzz: Fuzz) -> None:
    """Hazard 3: above live fragments, above those that any segment covers, above those gone."""
    for _ in range(3):
        fuzz.append()
    newest = max(fuzz.table.marks)
    segment = stage_segment(fuzz.table, "id", "BTREE", list(fuzz.table.marks), fuzz.ledger)
    fuzz.table = fuzz.commit_segment(segment)
    fuzz.delete_the_newest_fragment()
    fuzz.table = fuzz.commit_rewrite(fuzz.staged())
    assert min(fuzz.table.marks) > newest
    fuzz.append()
    fuzz.delete_the_newest_fragment()
    top = fuzz.table.highest_fragment
    fuzz.table = commits.overwrite(fuzz.table, fuzz.table.version, (), fuzz.ledger)
    fuzz.rows.clear()
    fuzz.append()
    fuzz.append()
    fuzz.table = fuzz.commit_rewrite(fuzz.staged())
    assert min(fuzz.table.marks) > top
    fuzz.check()


def test_the_id_of_a_fragment_that_is_gone_is_not_given_again(fuzz: Fuzz) -> None:
    """Also where no segment remembers it: what is known of a fragment is kept by its id."""
    fuzz.append()
    newest = max(fuzz.table.marks)
    fuzz.delete_the_newest_fragment()
    assert newest not in fuzz.table.marks
    fuzz.table = fuzz.commit_rewrite(fuzz.staged())
    assert min(fuzz.table.marks) > newest


def test_a_number_that_was_taken_since_it_was_given_is_given_anew(fuzz: Fuzz) -> None:
    """Hazard 3: numbers are found out where a compaction is bound, not only where it is staged."""
    numbered = commits.number_fragments(fuzz.table, fuzz.staged())
    (given,) = (json.loads(text)["id"] for _, new in numbered for text in new)
    fuzz.append()
    assert given in fuzz.table.marks  # by the fragment of another
    rows = names(fuzz.table)
    table = commits.rewrite(fuzz.table, numbered, fuzz.ledger)
    assert len(table.marks) == 2
    assert names(table) == rows
    unnumbered = commits.rewrite(fuzz.table, fuzz.staged(), fuzz.ledger)
    assert min(unnumbered.marks) > given


def test_an_id_that_only_a_segment_knows_is_not_given(fuzz: Fuzz) -> None:
    """As of a table that another program compacted: Lance itself counts only what it has seen."""
    segment = stage_segment(fuzz.table, "id", "BTREE", list(fuzz.table.marks), fuzz.ledger)
    wide = msgspec.structs.replace(segment, fragment_ids=(*segment.fragment_ids, 999))
    operation = LanceOperation.CreateIndex(new_indices=[indexes._index(wide)], removed_indices=[])
    fuzz.table = commits.commit_operation(fuzz.table, operation, [], fuzz.ledger)
    assert fuzz.table.highest_fragment < 999
    fuzz.table = fuzz.commit_rewrite(fuzz.staged())
    assert min(fuzz.table.marks) > 999
    fuzz.check()


def test_a_rewritten_fragment_carries_no_versions_of_its_old_rows(fuzz: Fuzz) -> None:
    """Hazard 14: Lance writes them where rows keep their ids, and they are never taken out."""
    versions = {"inline": [10, 8, 10, 4, 10, 2, 16, 2, 16, 2]}
    groups = []
    for old, new in fuzz.staged():
        marked = {"created_at_version_meta": versions, "last_updated_at_version_meta": versions}
        groups.append((old, [json.dumps(json.loads(text) | marked) for text in new]))
    table = commits.rewrite(fuzz.table, groups, fuzz.ledger)
    (fragment,) = table.handle.get_fragments()
    metadata = fragment.metadata.to_json()
    fields = json.loads(metadata) if isinstance(metadata, str) else metadata
    assert not fields.get("created_at_version_meta")
    assert not fields.get("last_updated_at_version_meta")


def test_an_index_covers_a_fragment_once(fuzz: Fuzz) -> None:
    segment = stage_segment(fuzz.table, "id", "BTREE", [0], fuzz.ledger)
    again = stage_segment(fuzz.table, "id", "BTREE", [0, 1], fuzz.ledger)
    fuzz.table = fuzz.commit_segment(segment)
    with pytest.raises(Conflict, match="would overlap"):
        fuzz.commit_segment(again)


def test_an_index_covers_only_what_it_was_built_over(fuzz: Fuzz) -> None:
    segment = stage_segment(fuzz.table, "id", "BTREE", [0, 1], fuzz.ledger)
    files = {number: mark.files for number, mark in fuzz.table.marks.items()}
    fuzz.table = fuzz.commit_rewrite(fuzz.staged())
    with pytest.raises(Conflict, match="changed while it was indexed"):
        replace_segments(fuzz.table, files, [segment], fuzz.ledger)


def test_version_files_shrink_when_fragments_are_compacted(fuzz: Fuzz) -> None:
    """Hazard 14."""

    def size() -> int:
        name = f"d{fuzz.table.version}.manifest"
        return (fuzz.path / "t" / "_versions" / name).stat().st_size

    small = size()
    for _ in range(60):
        fuzz.append()
    large = size()
    fuzz.table = fuzz.commit_rewrite(fuzz.staged())
    fuzz.append()  # the version of the compaction itself still tells what it replaced
    assert size() * 4 < large
    assert size() < small * 2


def test_a_panic_of_lance_comes_out_as_our_error(fuzz: Fuzz) -> None:
    """Hazard 19: `except Exception` would not see it."""
    from lance import LanceOperation

    built = stage_segment(fuzz.table, "bio", "INVERTED", [0], fuzz.ledger)
    fuzz.table = fuzz.commit_segment(built)
    second = indexes._index(stage_segment(fuzz.table, "bio", "INVERTED", [0], fuzz.ledger))
    overlap = LanceOperation.CreateIndex(new_indices=[second], removed_indices=[])
    with pytest.raises(Corrupt, match="table t cannot be read") as error:
        commits.commit_operation(fuzz.table, overlap, [], fuzz.ledger)
    assert not isinstance(error.value.__cause__, Exception)
