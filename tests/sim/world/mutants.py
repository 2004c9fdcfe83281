"""Owns mutants: each leaves one rule out, and the world must fail.

python -m tests.sim.world.mutants [NAME…] [--first N] [--seeds N] prints for each in which seed it
was caught.
What came of each is written down in `docs/dev/invariants.md`.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omnigraph.engine import columns, key_index, session
from omnigraph.engine.merge import columns as merged_columns
from omnigraph.engine.merge import run
from omnigraph.engine.query.adjacency.cache import Adjacencies
from omnigraph.engine.upkeep import folding, recovery
from omnigraph.engine.upkeep import optimize as upkeep_of_tables
from omnigraph.engine.write import attempt, bind, publisher, stage
from omnigraph.model import keys
from omnigraph.plan import rebase, successor
from omnigraph.plan.migrate import properties as migrated
from omnigraph.plan.schema_merge import properties as merged
from omnigraph.store import disk, forks, lance_errors, open_tables
from omnigraph.store.fragments import FragmentMark
from omnigraph.store.objects import Unsettled
from omnigraph.store.tables import Table
from tests.sim.world.drawing import run_world
from tests.sim.world.steps import Fault

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, Mutant] = {}
UNSEEN = frozenset({"rule_3_columns_are_kept_by_name"})
"""Mutants that no world can see, because another rule holds as well; a unit test does."""
STEPS = 30
SEEDS = 500


def mutant(make: Mutant) -> Mutant:
    MUTANTS[make.__name__] = make
    return make


# 1: content ids


@mutant
def rule_1_contents_are_counted(patch: pytest.MonkeyPatch) -> None:
    """What two branches make of one table has the same name."""
    moved, renewed = bind._moved, bind._renewed

    def count(pin: Any) -> Any:
        return msgspec.structs.replace(pin, content=f"{pin.location}@{pin.table_version}")

    patch.setattr(
        bind, "_moved", lambda pin, table, by=None: (count if by else _same)(moved(pin, table, by))
    )
    patch.setattr(bind, "_renewed", lambda pin, by: count(renewed(pin, by)))


def _same(pin: Any) -> Any:
    return pin


@mutant
def rule_1_a_change_keeps_its_content_id(patch: pytest.MonkeyPatch) -> None:
    moved = bind._moved
    patch.setattr(bind, "_moved", lambda pin, table, by=None: moved(pin, table))


@mutant
def rule_1_reads_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebase, "_holds", lambda version, table, content: table in version.pins)


# 2: fast-forwards


@mutant
def rule_2_a_fast_forward_begins_the_chain_anew(patch: pytest.MonkeyPatch) -> None:
    """As it was in format 1."""
    advance = successor._advance

    def forwarded(end: Any, change: Any, birth: Any) -> Any:
        version = advance(end, change, birth)
        if not version.forwarded:
            return version
        return msgspec.structs.replace(version, first=version.version, forked_from=version.merged)

    patch.setattr(successor, "_advance", forwarded)


@mutant
def rule_2_a_fast_forward_takes_in_no_past(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run, "joined", lambda head, other: dict(head.ancestry))


# 3: addresses by file


@mutant
def rule_3_keys_are_indexed_by_fragment_number(patch: pytest.MonkeyPatch) -> None:
    numbers = property(
        lambda index: {(str(mark.id),): number for number, mark in index.marks.items()}
    )
    compare = key_index.KeyIndex.compare

    def by_number(index: Any, marks: Any) -> Any:
        named = [_named(mark) for mark in marks]
        compared = compare(index, [renamed for renamed, _ in named])
        back = {renamed.files: mark for renamed, mark in named}
        return key_index.Compared(
            {number: back[mark.files] for number, mark in compared.same.items()},
            {number: back[mark.files] for number, mark in compared.moved.items()},
            [back[mark.files] for mark in compared.fresh],
        )

    patch.setattr(key_index.KeyIndex, "numbers", numbers)
    patch.setattr(key_index.KeyIndex, "compare", by_number)


def _named(mark: FragmentMark) -> tuple[FragmentMark, FragmentMark]:
    renamed = FragmentMark(mark.id, (str(mark.id),), mark.deletion, mark.rows, mark.physical)
    return renamed, mark


@mutant
def rule_3_columns_are_kept_by_fragment_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        columns,
        "_key",
        lambda table, mark, column: (table.location, mark.id, table.columns[column]),
    )


@mutant
def rule_3_columns_are_kept_by_name(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(columns, "_key", lambda table, mark, column: (table.location, mark.files, column))


@mutant
def rule_3_vertices_are_kept_by_fragment_number(patch: pytest.MonkeyPatch) -> None:
    def of_files(self: Any, node: Any, table: Any, mark: Any, column: str) -> Any:
        return (table.location, mark.id, column, self.vertices(node).serial, "vertices")

    patch.setattr(Adjacencies, "_of_files", of_files)


# 4: columns for life


@mutant
def rule_4_columns_are_named_as_their_properties(patch: pytest.MonkeyPatch) -> None:
    def plain(name: str, origin: str, used: Any) -> str:
        column, number = name, 1
        while column in used:
            number += 1
            column = f"{name}_{number}"
        return column

    for module in (merged_columns, migrated, merged):
        patch.setattr(module, "fresh_column", plain)


# 5: durability


@mutant
def rule_5_nothing_that_a_plan_brings_is_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publisher, "paths_of", lambda root, keys: [])


@mutant
def rule_5_staged_files_are_as_young_as_the_last_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stage.StagedAppends, "begin", lambda self, now: setattr(self, "since", now))


@mutant
def rule_5_a_failed_sync_of_a_commit_is_success(patch: pytest.MonkeyPatch) -> None:
    settle = disk._settle

    def silent(path: Path) -> None:
        with contextlib.suppress(Unsettled):
            settle(path)

    patch.setattr(disk, "_settle", silent)


# 6: threads and what Lance throws


@mutant
def rule_6_lance_borrows_the_handle_that_all_share(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Table, "own_handle", lambda self: self.handle)


@mutant
def rule_6_errors_of_lance_leave_the_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lance_errors, "is_failure", lambda error: False)


@mutant
def rule_6_what_follows_on_a_commit_may_fail_it(patch: pytest.MonkeyPatch) -> None:
    for module in (attempt, upkeep_of_tables, recovery):
        patch.setattr(module, "after_commit", lambda doing: contextlib.nullcontext())
    patch.setattr(folding, "is_failure", lambda error: False)


# 7: forks


@mutant
def rule_7_a_forked_child_goes_on(patch: pytest.MonkeyPatch) -> None:
    for module in (session, open_tables):
        patch.setattr(module, "require_own", lambda mark, root: None)
    for module in (forks, lance_errors):
        patch.setattr(module, "require_usable", lambda: None)


# 8: incarnations and counts


@mutant
def rule_8_handles_follow_the_name_of_a_branch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(session.Session, "require_held", lambda self, end: None)


@mutant
def rule_8_counts_are_not_reads(patch: pytest.MonkeyPatch) -> None:
    init = attempt.Write.__init__

    def untold(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options | {"tells": False})

    patch.setattr(attempt.Write, "__init__", untold)


# 9: idempotency


@mutant
def rule_9_keys_are_forgotten_after_the_next_two(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(keys, "RECENT", 2)
    patch.setattr(attempt, "find_keyed", _in_head_only)


def _in_head_only(session: Any, key: str, head: Any, ledger: Any) -> Any:
    number = head.keys.find(bytes.fromhex(key))
    return None if number is None else session.read_record(head.branch, number, ledger)


@mutant
def rule_9_a_call_is_told_from_others_by_chance(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "hash_statements", lambda statements, catalog: f"{id(statements):016x}")


@mutant
def rule_9_all_calls_with_a_key_are_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "hash_statements", lambda statements, catalog: "0" * 16)


@mutant
def rule_9_a_known_key_is_found_when_all_else_is_done(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt.Write, "repeats", lambda self: None)


# Trying them


@contextmanager
def left_out(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS[name](patch)
        yield


def catch(name: str, first: int, seeds: int) -> tuple[int, Fault] | None:
    """The first seed whose world holds with the rule and fails without it, and how."""
    for seed in range(first, seeds):
        with left_out(name):
            fault = run_world(seed, STEPS).fault
        if fault is not None and run_world(seed, STEPS).fault is None:
            return seed, fault
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.world.mutants")
    parser.add_argument("names", nargs="*", default=sorted(MUTANTS.keys() - UNSEEN))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    asked = parser.parse_args()
    missed = 0
    for name in asked.names:
        caught = catch(name, asked.first, asked.seeds)
        missed += caught is None
        told = "NOT CAUGHT" if caught is None else f"{caught[0]}: {str(caught[1]).splitlines()[0]}"
        print(f"{name}: {told[:200]}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
