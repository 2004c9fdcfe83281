"""What search takes for granted of Lance: when an upgrade breaks it, it says so here first.

The first part says what Lance does, the second what goes wrong unless a rule of ours is kept.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceOperation as Op
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction
from lance.query import BooleanQuery, FullTextOperator, Occur, PhraseQuery

from tests.search.oracle import Corpus, cosine_distance, words
from tests.search.tables import (
    ANALYSIS,
    DIMENSION,
    EVERY_PROBE,
    Texts,
    add,
    addresses,
    allowing,
    allowing_fragments,
    append,
    combined,
    commit,
    delete,
    distances,
    filled,
    fragments_of,
    match,
    rows,
    scores,
    segments_of,
    text_segment,
    vector_segment,
    with_text,
)

RED: Texts = {f"a{n}": "red fox " + "lorem " * n for n in range(5)} | {"a8": None, "a9": "..."}
BLUE: Texts = {
    f"b{n}": "blue fox " + "ipsum " * (n + 3) + ("red" if n % 2 else "") for n in range(4)
}
BOTH: Texts = {**RED, **BLUE}


def expected(texts: Texts, wanted: str, corpus: Texts | None = None) -> dict[str, float]:
    """The scores of those that match, by the oracle."""
    known = Corpus.of((texts if corpus is None else corpus).values())
    found = {key: known.score(text, wanted) for key, text in texts.items()}
    return {key: score for key, score in found.items() if score}


def close(found: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    return found.keys() == wanted.keys() and all(
        math.isclose(found[key], wanted[key], rel_tol=1e-5, abs_tol=1e-6) for key in wanted
    )


def some(found: Mapping[str, float], letter: str) -> dict[str, float]:
    return {key: value for key, value in found.items() if key.startswith(letter)}


# What holds.


def test_scores_are_the_formula_and_segments_share_their_statistics(tmp_path: Path) -> None:
    ds = filled(tmp_path, RED, BLUE)
    one, two = with_text(ds, [0, 1]), with_text(ds, [0], [1])
    wanted = expected(BOTH, "red fox")
    assert close(scores(one, match("red fox")), wanted)
    assert close(scores(two, match("red fox")), wanted)
    assert close(scores(two, combined("red fox")), wanted)


def test_combined_fields_scores_segments_and_tail_alike_and_match_does_not(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [0])
    wanted = expected(BOTH, "red fox")
    assert close(scores(ds, combined("red fox")), wanted)
    found = scores(ds, match("red fox"))
    assert found.keys() == wanted.keys()
    assert close(some(found, "b"), some(wanted, "b")), "the tail knows all statistics"
    assert close(some(found, "a"), expected(RED, "red fox")), "the segment knows its own"
    assert not close(found, wanted)


def test_an_empty_segment_gives_the_flat_search_our_analysis(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [])
    assert close(scores(ds, match("RED fóx")), expected(BOTH, "red fox"))
    assert scores(ds, PhraseQuery("blue fox", "bio")).keys() == BLUE.keys()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (PhraseQuery("Quick Brown", "bio"), "03"),
        (PhraseQuery("the quick", "bio"), "0"),
        (match("quick fox", operator=FullTextOperator.AND), "013"),
        (match("the fox"), "013"),
        (BooleanQuery([(Occur.MUST, match("quick")), (Occur.MUST_NOT, match("fox"))]), "2"),
    ],
    ids=["phrase", "phrase with a stop word", "all", "any", "not"],
)
def test_the_same_rows_are_found_in_a_segment_and_in_the_tail(
    tmp_path: Path, query: Any, wanted: str
) -> None:
    texts = ["the quick brown fox", "quick fox brown", "brown quick", "quick-brown FOX's"]
    ds = filled(tmp_path, *({f"{name}{n}": t for n, t in enumerate(texts)} for name in "ab"))
    found = scores(with_text(ds, [0]), query)
    assert found.keys() == {name + number for name in "ab" for number in wanted}


def test_an_allowlist_filters_before_ranking_and_changes_no_score(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [0])
    ds = add(ds, vector_segment(ds, [0]))
    at, chosen = addresses(ds), ["a1", "a3", "b1", "b2"]
    only = allowing(at[key] for key in chosen)
    full = scores(ds, combined("fox"))
    found = scores(ds, combined("fox"), row_addr_allowlist=only)
    assert close(found, {key: full[key] for key in chosen})
    assert len(scores(ds, combined("fox"), row_addr_allowlist=only, limit=2)) == 2
    assert distances(ds, np.ones(DIMENSION), row_addr_allowlist=only).keys() == set(chosen)


def test_an_allowlist_may_be_empty_name_the_dead_or_name_whole_fragments(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [0])
    at = addresses(ds)
    assert scores(ds, match("fox"), row_addr_allowlist=allowing([])) == {}
    second = scores(ds, match("fox"), row_addr_allowlist=allowing_fragments([1]))
    assert second.keys() == BLUE.keys()
    dead = delete(ds, "id = 'a1'")
    listed = allowing([at["a1"], at["a3"], 99 << 32])
    assert scores(dead, match("fox"), row_addr_allowlist=listed).keys() == {"a3"}


def test_all_probes_are_exact_over_segments_tail_and_deletions(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    vectors = {f"n{n:04d}": random.standard_normal(DIMENSION) for n in range(900)}
    keys = list(vectors)
    parts = [rows(dict.fromkeys(keys[at : at + 300], "x"), vectors) for at in (0, 300, 600)]
    ds = filled(tmp_path, *parts)
    ds = add(ds, vector_segment(ds, [0], 7), vector_segment(ds, [1], 3))
    ds = delete(ds, "id < 'n0100' or id = 'n0777'")
    live = {key: v for key, v in vectors.items() if key >= "n0100" and key != "n0777"}
    for _ in range(5):
        asked = random.standard_normal(DIMENSION)
        wanted = {key: cosine_distance(v, asked) or 0.0 for key, v in live.items()}
        best = sorted(wanted, key=wanted.__getitem__)[:20]
        assert list(distances(ds, asked, 20)) == best
        assert list(distances(ds, asked, 20, use_index=False)) == best
        found = distances(ds, asked)
        assert found.keys() == wanted.keys()
        assert all(abs(found[key] - wanted[key]) < 1e-6 for key in wanted)


@pytest.mark.parametrize("indexed", [False, True])
def test_null_zero_and_non_finite_vectors_are_near_nothing(tmp_path: Path, indexed: bool) -> None:
    bad = {
        "null": None,
        "zero": np.zeros(DIMENSION),
        "nan": np.full(DIMENSION, np.nan),
        "inf": np.full(DIMENSION, np.inf),
    }
    random = np.random.default_rng(2)
    good = {f"n{n}": random.standard_normal(DIMENSION) for n in range(60)}
    vectors = bad | good
    ds = filled(tmp_path, rows(dict.fromkeys(vectors, "x"), vectors))
    ds = add(ds, vector_segment(ds, [0])) if indexed else ds
    assert distances(ds, np.ones(DIMENSION)).keys() == good.keys()
    assert distances(ds, np.zeros(DIMENSION)) == {}


def test_a_scratch_table_in_memory_is_an_index_of_words() -> None:
    ds = lance.write_dataset(rows(BOTH), "memory://scratch-of-facts")
    ds.create_scalar_index("bio", "INVERTED", with_position=True, **ANALYSIS)
    assert close(scores(ds, match("red fox")), expected(BOTH, "red fox"))
    fuzzy = scores(ds, match("fix", fuzziness=1, max_expansions=100_000))
    assert fuzzy.keys() == {key for key, text in BOTH.items() if "fox" in words(text)}


def test_a_warm_search_reads_nothing_and_a_new_version_keeps_what_is_known(tmp_path: Path) -> None:
    made = with_text(filled(tmp_path, RED, BLUE), [0, 1])
    made = add(made, vector_segment(made, [0, 1]))
    ds = lance.dataset(made.uri, version=made.version, session=lance.Session())

    def reads(asked: Any) -> int:
        asked.io_stats_incremental()
        ids = {"columns": ["_rowid", "_score"]}
        asked.scanner(**ids, full_text_query=match("red"), limit=3).to_table()
        near = {"column": "vec", "q": np.ones(DIMENSION), "k": 3, "metric": "cosine", "nprobes": 9}
        asked.scanner(columns=["_rowid", "_distance"], nearest=near).to_table()
        return int(asked.io_stats_incremental().read_iops)

    assert 0 < reads(ds) <= 45
    assert reads(ds) == 0
    assert reads(append(ds, rows({"z": "red"}))) <= 12, "the tail is read, not the index"


def test_words_are_cut_folded_and_dropped_from_forty_bytes_on() -> None:
    assert words("Quick-brown FOX's café") == ["quick", "brown", "fox", "s", "cafe"]
    assert words("the y and") == ["the", "y", "and"]
    assert words("... 🦊 👩‍👧") == []
    assert words("日本語 สวัสดีครับ שלום") == ["日本語", "สวัสดี", "ครับ", "שלום"]
    assert (words("y" * 39), words("y" * 40), words("é" * 20)) == (["y" * 39], [], [])


def test_a_dropped_word_leaves_its_place_empty(tmp_path: Path) -> None:
    texts = {"near": "red fox", "far": f"red {'x' * 50} fox"}
    ds = filled(tmp_path, texts)
    for found in (with_text(ds, [0]), with_text(ds, [])):
        assert scores(found, PhraseQuery("red fox", "bio")).keys() == {"near"}
        assert scores(found, PhraseQuery(f"red {'y' * 50} fox", "bio")).keys() == {"far"}


# What goes wrong.


def test_without_any_segment_text_is_cut_another_way(tmp_path: Path) -> None:
    ds = filled(tmp_path, {"a": "quick-brown FOX's café"})
    assert scores(ds, match("fox")) == {}
    assert scores(ds, match("cafe")) == {}
    both = match("fox cafe", operator=FullTextOperator.AND)
    assert scores(with_text(ds, [0]), both).keys() == {"a"}


def test_a_word_twice_counts_twice_for_match_and_once_for_combined_fields(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [0, 1])
    once = expected(BOTH, "red")
    assert close(scores(ds, match("red red")), {key: 2 * score for key, score in once.items()})
    assert close(scores(ds, combined("red red")), once)


def test_a_prefilter_changes_scores_of_the_tail_under_match(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [0])
    only = {"filter": "id in ('b1', 'b2')", "prefilter": True}

    def kept(query: Any) -> dict[str, float]:
        return {key: score for key, score in scores(ds, query).items() if key in ("b1", "b2")}

    assert not close(scores(ds, match("fox"), **only), kept(match("fox")))
    assert close(scores(ds, combined("fox"), **only), kept(combined("fox")))


def test_dead_rows_count_until_their_segment_is_rebuilt(tmp_path: Path) -> None:
    ds = delete(with_text(filled(tmp_path, RED, BLUE), [0, 1]), "id in ('a0', 'b0', 'b2')")
    live = {key: text for key, text in BOTH.items() if key not in ("a0", "b0", "b2")}
    found = scores(ds, match("red fox"))
    assert close(found, expected(live, "red fox", BOTH))
    assert not close(found, expected(live, "red fox"))
    again = add(ds, text_segment(ds, [0, 1]), removed=segments_of(ds))
    assert close(scores(again, match("red fox")), expected(live, "red fox"))


def test_a_compaction_that_leaves_its_segment_behind_counts_rows_twice(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [0, 1])
    (task,) = Compaction.plan(ds, {"target_rows_per_fragment": 1000}).tasks
    done = task.execute(ds)
    bare = {"row_id_meta": None, "created_at_version_meta": None}
    bare |= {"id": 7, "last_updated_at_version_meta": None}  # type: ignore[dict-item]
    new = [
        FragmentMetadata.from_json(json.dumps(fragment | bare))
        for fragment in json.loads(done.json())["new_fragments"]
    ]
    group = Op.RewriteGroup(old_fragments=done.original_fragments, new_fragments=new)
    small = commit(ds, Op.Rewrite(groups=[group], rewritten_indices=[]))
    assert fragments_of(small) == [7]
    wanted = expected(BOTH, "red fox")
    assert not close(scores(small, combined("red fox")), wanted)
    again = add(small, text_segment(small, [7]), removed=segments_of(small))
    assert close(scores(again, match("red fox")), wanted)


def test_combined_fields_returns_the_dead_unless_live_fragments_are_named(tmp_path: Path) -> None:
    """A fragment of the segment is gone, another has dead rows, and there is a tail."""
    first, second = {f"a{n}": "red fox" for n in range(3)}, {f"b{n}": "red red" for n in range(3)}
    ds = with_text(filled(tmp_path, first, second), [0, 1])
    ds = append(delete(delete(ds, "id like 'b%'"), "id = 'a0'"), rows({"z": "blue"}))

    def addressed(**options: Any) -> int:
        asked = ds.scanner(columns=["_rowid"], full_text_query=combined("red"), **options)
        return int(asked.to_table().num_rows)

    live = {"row_addr_allowlist": allowing_fragments(fragments_of(ds))}
    assert (addressed(), addressed(**live)) == (5, 2)
    assert scores(ds, combined("red"), limit=1) == {}
    assert len(scores(ds, match("red"), limit=1)) == 1
    assert len(scores(ds, combined("red"), limit=1, **live)) == 1


def test_fuzzy_skips_the_tail_and_does_not_fold_its_words(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, {"a": "fox café"}, {"b": "fox"}), [0])

    def fuzzy(wanted: str, **options: Any) -> set[str]:
        query = match(wanted, fuzziness=1, max_expansions=100_000)
        return set(scores(ds, query, **options))

    assert fuzzy("fax") == fuzzy("fax", fast_search=True) == {"a"}, "b is missed"
    assert fuzzy("FAX") == fuzzy("cáfé") == set()
    assert fuzzy(*words("FAX")) == fuzzy(*words("cáfé")) == {"a"}


def test_fuzzy_stops_at_fifty_words_and_refuses_three_edits(tmp_path: Path) -> None:
    texts = {f"n{n}": f"w{chr(97 + n // 10)}{chr(97 + n % 10)}" for n in range(100)}
    ds = with_text(filled(tmp_path, texts), [0])
    assert len(scores(ds, match("wzz", fuzziness=2))) == 50
    assert len(scores(ds, match("wzz", fuzziness=2, max_expansions=100_000))) == 100
    with pytest.raises((ValueError, OSError, RuntimeError)):
        scores(ds, match("abcdefghijklmnopqrst", fuzziness=3))


@pytest.mark.parametrize("make", [match, combined])
def test_ties_are_cut_anywhere(tmp_path: Path, make: Any) -> None:
    parts = [
        {f"n{999 - n:04d}": "red fox" if n % 3 else "red fox blue" for n in range(at, at + 250)}
        for at in range(0, 1000, 250)
    ]
    ds = filled(tmp_path, *parts)
    ds = with_text(ds, fragments_of(ds))
    every = scores(ds, make("red"))
    best = sorted(every, key=lambda key: (-every[key], key))[:5]
    assert sorted(scores(ds, make("red"), limit=5)) != best


def test_few_or_default_probes_miss_rows_of_a_candidate_set(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    centers = random.standard_normal((200, DIMENSION)) * 4
    vectors = {
        f"n{n:05d}": centers[n % 200] + random.standard_normal(DIMENSION) * 0.3
        for n in range(20_000)
    }
    keys = list(vectors)
    ds = filled(tmp_path, rows(dict.fromkeys(keys, "x"), vectors))
    ds = add(ds, vector_segment(ds, [0], 140))
    at = addresses(ds)
    hits: dict[int | None, int] = {None: 0, 3: 0, EVERY_PROBE: 0}
    for _ in range(20):
        chosen = [keys[n] for n in random.choice(len(keys), 300, replace=False)]
        asked = random.standard_normal(DIMENSION)
        far = {key: cosine_distance(vectors[key], asked) or 0.0 for key in chosen}
        best = set(sorted(far, key=far.__getitem__)[:10])
        only = allowing(at[key] for key in chosen)
        for probes in hits:
            found = distances(ds, asked, 10, probes=probes, row_addr_allowlist=only)
            hits[probes] += len(best & found.keys())
    assert hits[EVERY_PROBE] == 200, hits
    few, default = hits[3], hits[None]
    assert few < 150, hits
    assert default < 200, hits


def test_squares_outside_single_precision_make_nonsense(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    vectors = {f"n{n}": random.standard_normal(DIMENSION) for n in range(60)}
    vectors["tiny"] = np.full(DIMENSION, 1e-30)
    ds = filled(tmp_path, rows(dict.fromkeys(vectors, "x"), vectors))
    assert distances(ds, np.ones(DIMENSION))["tiny"] == -math.inf
    indexed = add(ds, vector_segment(ds, [0]))
    assert "tiny" not in distances(indexed, np.ones(DIMENSION))


def test_without_a_metric_the_flat_search_takes_another_than_the_index(tmp_path: Path) -> None:
    ds = filled(tmp_path, rows({f"n{n}": "x" for n in range(60)}))
    near = {"column": "vec", "q": np.ones(DIMENSION), "k": 60}
    asked = ds.scanner(columns=["id", "_distance"], nearest=near).to_table()
    plain = dict(zip(asked["id"].to_pylist(), asked["_distance"].to_pylist(), strict=True))
    assert abs(plain["n0"] - distances(ds, np.ones(DIMENSION))["n0"]) > 1e-3


def test_text_segments_of_other_detached_versions_are_refused_by_their_number(
    tmp_path: Path,
) -> None:
    """Numbers of versions are random, and one that is larger counts as of the future."""
    refused = 0
    for _ in range(8):
        ds = filled(tmp_path, RED, BLUE)
        first = text_segment(ds, [0])
        later = append(add(ds, first), rows({"c": "red"}))
        pair = [first, text_segment(later, [1])]
        try:
            later.merge_existing_index_segments(pair)
        except ValueError:
            refused += 1
        stamped = [dataclasses.replace(s, dataset_version=later.version) for s in pair]
        later.merge_existing_index_segments(stamped)
    assert refused > 0


def test_vector_segments_with_centroids_of_their_own_do_not_merge(tmp_path: Path) -> None:
    ds = filled(tmp_path, *({f"{name}{n}": "x" for n in range(60)} for name in "ab"))
    pair = [vector_segment(ds, [0]), vector_segment(ds, [1])]
    with pytest.raises(RuntimeError):
        ds.merge_existing_index_segments(pair)


def test_a_limit_of_zero_with_a_tail_panics(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [0])
    with pytest.raises(RuntimeError, match="aborted"):
        scores(ds, match("fox"), limit=0)


def test_segments_of_another_analysis_under_one_name_fail_every_search(tmp_path: Path) -> None:
    ds = with_text(filled(tmp_path, RED, BLUE), [0])
    other = ds.create_index_uncommitted(
        "bio", "INVERTED", name="bio_idx", fragment_ids=[1], replace=True, stem=True
    )
    mixed = add(ds, ds.merge_existing_index_segments([other]))
    with pytest.raises((ValueError, OSError, RuntimeError, pa.ArrowInvalid)):
        scores(mixed, match("fox"))
