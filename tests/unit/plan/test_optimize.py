"""What maintenance decides: pure functions of sizes, coverage and limits."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from omnigraph.engine.write.migration import read_schema
from omnigraph.model.indexes import IndexSpec
from omnigraph.plan.migrate import apply_steps, plan_migration
from omnigraph.plan.optimize import (
    BY_HAND,
    BY_ITSELF,
    Covered,
    IndexWork,
    Limits,
    Piece,
    plan_compaction,
    plan_index,
    split_segment,
    tail_length,
    wanted_indexes,
)

ID = IndexSpec("id", "BTREE")
KB = 1024


def pieces(*sizes: int) -> list[Piece]:
    return [Piece(n, max(size // 100, 1), 0, size) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "limits", "expected"),
    [
        ((), BY_HAND, ()),
        ((600,), BY_HAND, ()),
        ((600, 600), BY_HAND, ((0, 1),)),
        ((600,) * 12, BY_ITSELF, ()),
        ((600,) * 13, BY_ITSELF, (tuple(range(13)),)),
        # One row beside a large fragment waits; two are merged, and the large one stays.
        ((600, 900 * KB), BY_HAND, ()),
        ((600, 600, 900 * KB), BY_HAND, ((0, 1),)),
        # Small fragments are all alike, whatever their size.
        ((600, 60 * KB), BY_HAND, ((0, 1),)),
        # A fragment joins those that are together as large as it is.
        ((80 * KB, 80 * KB, 150 * KB, 300 * KB, 5000 * KB), BY_HAND, ((0, 1, 2, 3),)),
        # What is smaller goes along.
        ((600, 9000 * KB, 9000 * KB), BY_HAND, ((0, 1, 2),)),
        ((600 * KB * KB, 600 * KB * KB), BY_HAND, ()),
    ],
)
def test_fragments_are_merged_once_they_are_worth_it(
    sizes: tuple[int, ...], limits: Limits, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert plan_compaction(pieces(*sizes), limits) == expected


def test_a_fragment_that_lost_many_rows_is_written_anew() -> None:
    large = 700 * KB * KB
    found = [Piece(1, 850, 150, large), Piece(2, 860, 140, large), Piece(3, 1000, 0, large)]
    assert plan_compaction(found, BY_ITSELF) == ((1,),)
    found = [Piece(1, 900, 100, large), Piece(2, 910, 90, large), Piece(3, 1000, 0, large)]
    assert plan_compaction(found, BY_HAND) == ((1,),)


@pytest.mark.parametrize("limits", [BY_HAND, BY_ITSELF])
@pytest.mark.parametrize("seed", range(5))
def test_a_row_is_rewritten_a_logarithm_of_times_and_few_fragments_are_left(
    limits: Limits, seed: int
) -> None:
    """Maintenance after every single commit of any size, for thousands of commits."""
    chance = random.Random(seed)
    held: dict[int, int] = {}
    written = total = longest = 0
    for commit in range(4000):
        size = chance.choice([600, 600, 600, 5 * KB, 200 * KB])
        held[commit] = size
        total += size
        for group in plan_compaction([Piece(n, 1, 0, s) for n, s in held.items()], limits):
            merged = sum(held.pop(n) for n in group)
            held[100_000 + commit] = merged
            written += merged
        longest = max(longest, len(held))
    doublings = math.log2(total / limits.floor) + 1
    assert written <= total * doublings + 4000 * limits.floor
    assert longest <= (limits.tail + 1) * doublings
    assert tail_length([Piece(n, 1, 0, s) for n, s in held.items()], limits) <= limits.tail


def test_indexes_follow_the_schema() -> None:
    text = """
    interface Named { label: String @index }
    node Person implements Named {
        name: String @key
        mail: String @unique
        motto: String @unique @index
        color: enum(red, blue) @index
        bio: String @index
        age: I64 @index
        score: F64 @index
        tags: [String] @index
        face: Vector(4) @index
        plain: String
        @unique(age, plain)
    }
    edge Knows: Person -> Person { since: Date @index  @unique(src, since) }
    """
    catalog = apply_steps(None, plan_migration(None, read_schema(text)).steps)
    person, knows = catalog.types
    assert set(wanted_indexes(person)) == {
        IndexSpec("id", "BTREE"),
        IndexSpec("name", "BTREE"),
        IndexSpec("mail", "BTREE"),
        IndexSpec("motto", "BTREE"),
        IndexSpec("motto", "INVERTED"),
        IndexSpec("label", "BTREE"),
        IndexSpec("label", "INVERTED"),
        IndexSpec("color", "BITMAP"),
        IndexSpec("bio", "BTREE"),
        IndexSpec("bio", "INVERTED"),
        IndexSpec("age", "BTREE"),
        IndexSpec("plain", "BTREE"),
        IndexSpec("tags", "LABEL_LIST"),
        IndexSpec("face", "IVF_FLAT"),
    }
    assert set(wanted_indexes(knows)) == {
        IndexSpec("id", "BTREE"),
        IndexSpec("src", "BTREE"),
        IndexSpec("dst", "BTREE"),
        IndexSpec("since", "BTREE"),
    }


def rows(**counts: int) -> list[Piece]:
    return [Piece(int(name[1:]), count, 0, 1) for name, count in counts.items()]


def test_a_small_table_needs_no_index() -> None:
    answer = plan_index(ID, rows(f1=1000), [], BY_HAND)
    assert isinstance(answer, str)
    assert "fewer than 1,024 rows" in answer


def test_what_no_segment_covers_gets_one() -> None:
    answer = plan_index(ID, rows(f1=5000, f2=5000), [], BY_HAND)
    assert answer == IndexWork(ID, (1, 2), ())
    held = [Covered("a", frozenset({1, 2}))]
    assert plan_index(ID, rows(f1=5000, f2=5000), held, BY_HAND) is None


def test_a_new_segment_takes_in_those_that_are_no_larger() -> None:
    held = [Covered("small", frozenset({1})), Covered("large", frozenset({2}))]
    answer = plan_index(ID, rows(f1=900, f2=90_000, f3=10), held, BY_HAND)
    assert answer == IndexWork(ID, (1, 3), ("small",))


def test_by_itself_a_segment_waits_for_enough_rows() -> None:
    held = [Covered("a", frozenset({1}))]
    answer = plan_index(ID, rows(f1=90_000, f2=10), held, BY_ITSELF)
    assert isinstance(answer, str)
    assert "10 rows are not covered yet" in answer


def test_segments_of_equal_size_are_merged() -> None:
    held = [Covered(f"s{n}", frozenset({n})) for n in (1, 2, 3)]
    answer = plan_index(ID, rows(f1=3000, f2=3000, f3=90_000), held, BY_HAND)
    assert answer == IndexWork(ID, (1, 2), ("s1", "s2"))


def test_a_segment_whose_fragments_are_gone_goes_too() -> None:
    held = [Covered("gone", frozenset({7, 8})), Covered("here", frozenset({1}))]
    answer = plan_index(ID, rows(f1=90_000), held, BY_HAND)
    assert answer == IndexWork(ID, (), ("gone",))


def test_vectors_are_indexed_above_a_size() -> None:
    spec = IndexSpec("face", "IVF_FLAT")
    assert isinstance(plan_index(spec, rows(f1=999), [], BY_HAND), str)
    assert plan_index(spec, rows(f1=40_000), [], BY_HAND) == IndexWork(spec, (1,), ())
    assert spec.partitions(40_000) == 10
    wide = IndexSpec("face", "IVF_FLAT", dimension=4096)
    assert wide.partitions(40_000) == 200


WORDS = IndexSpec("bio", "INVERTED")


def test_words_are_indexed_anew_with_any_rewrite_under_them() -> None:
    held = [Covered("old", frozenset({1, 2, 3}))]
    answer = plan_index(WORDS, rows(f1=5000, f2=5000, f9=10), held, BY_ITSELF)
    assert answer == IndexWork(WORDS, (1, 2, 9), ("old",))
    assert plan_index(ID, rows(f1=5000, f2=5000), held, BY_ITSELF) is None


def test_words_are_indexed_anew_when_a_tenth_of_their_rows_is_gone() -> None:
    held = [Covered("old", frozenset({1}))]
    few = [Piece(1, rows=9_001, deleted=999, bytes=1 << 20)]
    many = [Piece(1, rows=8_999, deleted=1_001, bytes=1 << 20)]
    assert plan_index(WORDS, few, held, BY_ITSELF) is None
    assert plan_index(WORDS, many, held, BY_ITSELF) == IndexWork(WORDS, (1,), ("old",))
    assert plan_index(ID, many, held, BY_ITSELF) is None


BIG = replace(BY_HAND, segment_rows=2000, segments=3)


def test_a_large_segment_is_split_into_parts_of_equal_bytes() -> None:
    pieces = [Piece(n, 1000, 0, size) for n, size in enumerate((10, 10, 10, 10, 40, 40, 20, 20))]
    assert split_segment(pieces, BIG) == [(0, 1, 2, 3), (4, 5), (6, 7)]
    assert split_segment(pieces, replace(BIG, segments=2)) == [(0, 1, 2, 3, 4), (5, 6, 7)]
    assert split_segment(pieces[:3], BIG) == [(0, 1, 2)]  # half of it would be too small
    assert split_segment([Piece(5, 9000, 0, 90)], BIG) == [(5,)]
    assert split_segment([], BIG) == [()]


@pytest.mark.parametrize("seed", range(30))
def test_parts_of_a_segment_are_disjoint_and_whole(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [
        Piece(n, chance.randint(1, 5000), 0, chance.randint(1, 9000))
        for n in range(chance.randint(1, 40))
    ]
    parts = split_segment(pieces, BIG)
    assert [n for part in parts for n in part] == [p.id for p in pieces]
    assert all(parts)
    assert len(parts) <= 3


def test_full_segments_are_left_alone_as_long_as_they_are_few() -> None:
    held = [Covered(f"s{n}", frozenset({n})) for n in (1, 2, 3)]
    three = rows(f1=3000, f2=3000, f3=3000)
    assert plan_index(ID, three, held, BIG) is None
    more = plan_index(ID, [*three, *rows(f4=9000)], held[:2], BIG)
    assert more == IndexWork(ID, (3, 4), ())
    assert plan_index(ID, three, held, replace(BIG, segments=2)) == IndexWork(
        ID, (1, 2, 3), ("s1", "s2", "s3")
    )
