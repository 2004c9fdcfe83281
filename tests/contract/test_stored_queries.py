"""Stored queries are part of the graph: they branch, merge by name, travel in time, and no schema
is accepted that would break one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BrokenQueries,
    Conflict,
    IdempotencyMismatch,
    InvalidArgument,
    InvalidParameters,
    InvalidQuery,
    MergeFailed,
    PreconditionFailed,
    ProtectedBranch,
    QueryNotFound,
    RevertFailed,
)
from omnigraph.settings import Settings
from tests.bench.aging import at_point
from tests.contract.graphs import SCHEMA, people

OLDER = """// People above some age.
query older($n: I32, $m: I32 = 200) {
    match { $p: Person $p.age > $n $p.age < $m }
    return { $p.name, $p.age as years }
    order { $p.name }
}
"""
NAMES = "match { $p: Person } return { $p.name } order { $p.name }"
OTHER_NAMES = "match { $p: Person } return { $p.name as other } order { $p.name }"
THIRD_NAMES = "match { $p: Person } return { $p.name as third } order { $p.name }"
ADD = 'query add($name: String) @description("One more.") { insert Person { name: $name } }'
KNOWS = "match { $p: Person $p knows $q } return { $q.name }"


def texts(g: Graph, ref: str = "main") -> dict[str, str]:
    return {name: one.text for name, one in g.at(ref).queries().items()}


def test_the_catalog_tells_what_each_query_takes_and_gives(g: Graph) -> None:
    done = g.store_queries({"older": OLDER, "add": ADD, "names": NAMES})
    assert done.set == ("add", "names", "older")
    assert done.commit is not None
    assert done.commit.kind == "queries"
    assert done.commit.message == "store add, names, older"
    found = g.queries()
    older, add = found["older"], found["add"]
    assert [(p.name, p.kind, p.required, p.default) for p in older.parameters] == [
        ("n", "I32", True, None),
        ("m", "I32", False, 200),
    ]
    assert [(c.name, c.kind, c.nullable) for c in older.columns] == [
        ("p.name", "String", False),
        ("years", "I32", True),
    ]
    assert (older.kind, older.reads, older.writes) == ("read", ("Person",), ())
    assert older.description == "People above some age."
    assert (add.mutation, add.reads, add.writes, add.columns) == (True, (), ("Person",), ())
    assert add.description == "One more."
    assert list(found) == ["add", "names", "older"]


def test_queries_run_by_name_at_any_ref(g: Graph) -> None:
    people(g, "A")
    g.store_queries({"names": NAMES, "add": ADD})
    g.run_mutation("add", {"name": "B"}, message="one more")
    assert g.run_query("names").to_pylist() == [{"p.name": "A"}, {"p.name": "B"}]
    assert g.at("main~1").run_query("names").to_pylist() == [{"p.name": "A"}]
    with pytest.raises(QueryNotFound, match="no stored query 'names'"):
        g.at("main~2").run_query("names")
    assert g.commit.message == "one more"


def test_what_cannot_be_run_is_said(g: Graph) -> None:
    g.store_queries({"older": OLDER, "add": ADD})
    with pytest.raises(QueryNotFound, match="Did you mean 'older'"):
        g.run_query("olders")
    with pytest.raises(InvalidArgument, match=r"is a mutation.*run_mutation"):
        g.run_query("add", {"name": "X"})
    with pytest.raises(InvalidArgument, match=r"only reads.*run_query"):
        g.run_mutation("older", {"n": 1})
    with pytest.raises(InvalidParameters, match=r"\$n"):
        g.run_query("older", {"n": "many"})
    assert g.count("Person") == 0


@pytest.mark.parametrize(
    ("queries", "error", "match"),
    [
        ({"x": "match { $p: Nobody } return { $p.name }"}, InvalidQuery, "Nobody"),
        (
            {"x": "query y() { match { $p: Person } return { $p.name } }"},
            InvalidQuery,
            "`y` cannot",
        ),
        ({"x": "query x() { match { $p: Person } return { $p.name } } " * 2}, InvalidQuery, "one"),
        ({"x": ""}, InvalidQuery, "one query"),
        ({"x": "explain match { $p: Person } return { $p.name }"}, InvalidQuery, "one query"),
        ({"x y": NAMES}, InvalidArgument, "cannot be called"),
        ({"X": NAMES}, InvalidArgument, "cannot be called"),
        ({"../x": NAMES}, InvalidArgument, "cannot be called"),
        ({"x" * 64: NAMES}, InvalidArgument, "cannot be called"),
        ({"x": f"// {'x' * 300_000}\n{NAMES}"}, InvalidArgument, "characters"),
        ({"x": f"// \ud800\n{NAMES}"}, InvalidArgument, "stored"),
        ({}, InvalidArgument, "Nothing is to be stored"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_changes(
    g: Graph, queries: dict[str, str], error: type[Exception], match: str
) -> None:
    g.store_queries({"names": NAMES})
    before = g.commit
    with pytest.raises(error, match=match):
        g.store_queries(queries)
    assert (g.commit, texts(g)) == (before, {"names": NAMES})


def test_setting_and_removing_is_one_commit(g: Graph) -> None:
    g.store_queries({"a": NAMES, "b": NAMES})
    done = g.store_queries({"c": NAMES}, remove=["a"])
    assert done.commit is not None
    assert done.commit.message == "store c, remove a"
    assert sorted(texts(g)) == ["b", "c"]
    with pytest.raises(QueryNotFound):
        g.store_queries({}, remove=["a"])
    with pytest.raises(InvalidArgument, match="both"):
        g.store_queries({"b": NAMES}, remove=["b"])
    assert g.store_queries({"b": NAMES}).commit is None  # it is so already
    g.store_queries({}, remove=["b", "c"])
    assert g.queries() == {}
    if isinstance(g, Graph):
        assert g.snapshot().graph_version.queries is None


def test_every_option_of_a_write_holds(g: Graph) -> None:
    first = g.store_queries({"a": NAMES}, idempotency_key="k")
    again = g.store_queries({"a": NAMES}, idempotency_key="k")
    assert (again.repeated, again.commit) == (True, first.commit)
    with pytest.raises(IdempotencyMismatch):
        g.store_queries({"a": OTHER_NAMES}, idempotency_key="k")
    assert first.commit is not None
    g.mutate('insert Person { name: "A" }')
    with pytest.raises(PreconditionFailed):
        g.store_queries({"b": NAMES}, if_commit=first.commit.id)
    g.protect("main")
    with pytest.raises(ProtectedBranch):
        g.store_queries({"b": NAMES})


def test_a_repeated_run_is_known_although_its_text_is_another_now(g: Graph) -> None:
    g.store_queries({"add": ADD})
    first = g.run_mutation("add", {"name": "A"}, idempotency_key="k")
    g.store_queries({"add": ADD.replace("One more", "Another")})
    again = g.run_mutation("add", {"name": "A"}, idempotency_key="k")
    assert (again.repeated, again.commit_id) == (True, first.commit_id)
    assert g.count("Person") == 1


def test_they_branch_and_are_restored_and_reverted(g: Graph) -> None:
    g.store_queries({"a": NAMES, "b": NAMES})
    g.create_branch("side")
    g.create_tag("then")
    g.branch("side").store_queries({"a": OTHER_NAMES}, remove=["b"])
    assert texts(g) == texts(g, "then") == {"a": NAMES, "b": NAMES}
    assert texts(g, "side") == {"a": OTHER_NAMES}
    changed = g.store_queries({"c": NAMES, "b": OTHER_NAMES}).commit
    assert changed is not None
    assert [(q.name, q.op.value) for q in g.at("main").diff("then").queries] == [
        ("b", "update"),
        ("c", "insert"),
    ]
    g.store_queries({"d": NAMES})
    g.revert(changed.id)
    assert texts(g) == {"a": NAMES, "b": NAMES, "d": NAMES}
    assert g.revert(changed.id) == g.commit  # nothing is left to undo
    g.restore("then")
    assert texts(g) == {"a": NAMES, "b": NAMES}
    assert g.restore("then") == g.commit


def test_a_revert_does_not_undo_what_was_changed_again(g: Graph) -> None:
    g.store_queries({"a": NAMES})
    changed = g.store_queries({"a": OTHER_NAMES}).commit
    assert changed is not None
    g.store_queries({"a": THIRD_NAMES})
    with pytest.raises(RevertFailed, match="stored query 'a'") as caught:
        g.revert(changed.id)
    (conflict,) = caught.value.conflicts
    assert (conflict.base, conflict.ours, conflict.theirs) == (OTHER_NAMES, THIRD_NAMES, NAMES)
    assert texts(g) == {"a": THIRD_NAMES}


# Merges


def diverged(g: Graph) -> None:
    """Each side changes one, adds one and removes one of its own; both change `both`."""
    names = ("both", "mine", "yours", "mine_gone", "yours_gone", "gone_and_changed")
    g.store_queries(dict.fromkeys(names, NAMES))
    g.create_branch("side")
    g.store_queries(
        {"both": OTHER_NAMES, "mine": OTHER_NAMES, "mine_new": NAMES},
        remove=["mine_gone", "gone_and_changed"],
    )
    g.branch("side").store_queries(
        {
            "both": THIRD_NAMES,
            "yours": OTHER_NAMES,
            "yours_new": NAMES,
            "gone_and_changed": OTHER_NAMES,
        },
        remove=["yours_gone"],
    )


def merged(both: str, changed: str | None) -> dict[str, str]:
    found = {
        "both": both,
        "mine": OTHER_NAMES,
        "yours": OTHER_NAMES,
        "mine_new": NAMES,
        "yours_new": NAMES,
    }
    return found if changed is None else found | {"gone_and_changed": changed}


def test_a_merge_takes_each_name_from_who_changed_it(g: Graph) -> None:
    diverged(g)
    before = g.commit
    told = g.merge("side", dry_run=True)
    assert [(c.kind.value, c.type, c.id) for c in told.conflicts] == [
        ("Query", "query", "both"),
        ("Query", "query", "gone_and_changed"),
    ]
    with pytest.raises(MergeFailed, match="stored query 'both'") as caught:
        g.merge("side")
    assert caught.value.conflicts == told.conflicts
    assert (told.conflicts[0].base, told.conflicts[0].ours) == (NAMES, OTHER_NAMES)
    assert g.commit == before
    done = g.merge("side", strategy="theirs")
    assert done.queries == ("both", "gone_and_changed", "yours", "yours_gone", "yours_new")
    assert texts(g) == merged(THIRD_NAMES, OTHER_NAMES)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"strategy": "ours"}, merged(OTHER_NAMES, None)),
        (
            {"strategy": {"query.both": "theirs", "query": "ours"}},
            merged(THIRD_NAMES, None),
        ),
        (
            {
                "resolve": {
                    ("query", "both"): {"text": NAMES},
                    ("query", "gone_and_changed"): None,
                }
            },
            merged(NAMES, None),
        ),
    ],
)
def test_a_strategy_or_an_answer_decides(
    g: Graph, how: dict[str, Any], expected: dict[str, str]
) -> None:
    diverged(g)
    g.merge("side", **how)
    assert texts(g) == expected


def test_answers_are_read_like_any_text(g: Graph) -> None:
    diverged(g)
    gone = {("query", "gone_and_changed"): None}
    with pytest.raises(InvalidArgument, match="its text, or None"):
        g.merge("side", resolve={("query", "both"): {"body": NAMES}, **gone})
    with pytest.raises(InvalidArgument, match="cannot be called"):
        g.merge("side", resolve={("query", "Both"): {"text": NAMES}, **gone})
    wrong = "match { $p: Nobody } return { $p.name }"
    with pytest.raises(MergeFailed, match="Nobody"):
        g.merge("side", resolve={("query", "both"): {"text": wrong}, **gone})


def test_a_query_that_the_other_side_made_impossible_is_a_conflict(g: Graph) -> None:
    g.create_branch("side")
    g.store_queries({"knows": KNOWS})
    fewer = SCHEMA.replace("  email: String? @unique\n", "").replace(
        "edge Knows: Person -> Person {\n  since: Date?\n  @key(src, dst)\n}\n", ""
    )
    g.branch("side").apply_schema(fewer)
    (conflict,) = g.merge("side", dry_run=True).conflicts
    assert (conflict.kind.value, conflict.id) == ("Query", "knows")
    with pytest.raises(MergeFailed, match="merged schema"):
        g.merge("side")
    g.merge("side", resolve={("query", "knows"): None})
    assert (texts(g), "Knows" in g.types()) == ({}, False)


def test_a_branch_that_is_brought_forward_has_the_queries_of_the_other(g: Graph) -> None:
    g.store_queries({"a": NAMES})
    g.create_branch("side")
    g.branch("side").store_queries({"b": NAMES}, remove=["a"])
    assert g.merge("side").outcome == "fast_forward"
    assert texts(g) == {"b": NAMES}


def test_after_merges_in_both_directions_no_name_is_lost(g: Graph) -> None:
    """Two newest common ancestors: what each side took from the other before is the base."""
    g.store_queries({"a": NAMES, "b": NAMES})
    g.create_branch("side")
    g.store_queries({"a": OTHER_NAMES})
    g.branch("side").store_queries({"b": OTHER_NAMES})
    g.create_branch("was", "main")
    g.merge("side")
    g.branch("side").merge("was")
    g.store_queries({"a": NAMES})  # a change back, which must not lose against the old change
    g.branch("side").store_queries({"c": NAMES})
    g.merge("side")
    assert texts(g) == {"a": NAMES, "b": OTHER_NAMES, "c": NAMES}


# Schemas


def test_a_schema_that_breaks_a_query_is_refused_and_the_plan_says_so(g: Graph) -> None:
    g.store_queries({"older": OLDER, "names": NAMES, "add": ADD})
    without = SCHEMA.replace("  age: I32?\n", "")
    plan = g.plan_schema(without)
    assert ([one.name for one in plan.broken], plan.can_be_applied) == (["older"], False)
    before = g.commit
    with pytest.raises(BrokenQueries, match="older") as caught:
        g.apply_schema(without)
    assert caught.value.http_status == 422
    assert [one.name for one in caught.value.queries] == ["older"]
    assert caught.value.queries[0].diagnostics
    assert (g.commit, g.schema) == (before, SCHEMA)
    g.store_queries({}, remove=["older"])
    assert g.plan_schema(without).can_be_applied
    assert g.apply_schema(without).applied
    with pytest.raises(InvalidQuery, match="age"):
        g.store_queries({"older": OLDER})


# Races


@pytest.fixture
def racing(root: str) -> Iterator[Graph]:
    """Nobody waits for a turn: another writer comes right before the put."""
    with omnigraph.init(root, schema=SCHEMA, settings=Settings(queue=False)) as g:
        yield g


@pytest.mark.stored
def test_writers_of_other_names_do_not_meet(racing: Graph) -> None:
    g = racing
    with at_point("before put", lambda: g.store_queries({"b": NAMES}, remove=[])):
        g.store_queries({"a": NAMES})
    assert texts(g) == {"a": NAMES, "b": NAMES}


@pytest.mark.stored
def test_writers_of_one_name_conflict_unless_they_agree(racing: Graph) -> None:
    g = racing
    g.store_queries({"a": NAMES})
    with (
        at_point("before put", lambda: g.store_queries({"a": OTHER_NAMES})),
        pytest.raises(Conflict, match="stored query 'a' was changed") as caught,
    ):
        g.store_queries({}, remove=["a"])
    assert caught.value.mismatch.table_key == "query:a"
    with at_point("before put", lambda: g.store_queries({"a": THIRD_NAMES})):
        g.store_queries({"a": THIRD_NAMES})
    assert texts(g) == {"a": THIRD_NAMES}


@pytest.mark.stored
def test_a_schema_and_a_query_never_pass_each_other(racing: Graph) -> None:
    without = SCHEMA.replace("  age: I32?\n", "")
    g = racing
    with (
        at_point("before put", lambda: g.store_queries({"older": OLDER})),
        pytest.raises(BrokenQueries),
    ):
        g.apply_schema(without)
    g.store_queries({}, remove=["older"])
    with (
        at_point("before put", lambda: g.apply_schema(without)),
        pytest.raises(InvalidQuery),
    ):
        g.store_queries({"older": OLDER})
    assert texts(g) == {}


@pytest.mark.stored
@pytest.mark.parametrize("write", ["restore", "merge", "revert"])
def test_no_write_passes_over_a_query_that_came_meanwhile(racing: Graph, write: str) -> None:
    g = racing
    then = g.store_queries({"a": NAMES}).commit
    assert then is not None
    g.create_branch("side")
    g.branch("side").mutate('insert Person { name: "S" }')
    done = g.store_queries({"b": NAMES}).commit
    assert done is not None
    calls: dict[str, Callable[[], object]] = {
        "restore": lambda: g.restore(then.id),
        "merge": lambda: g.merge("side"),
        "revert": lambda: g.revert(done.id),
    }
    with at_point("before put", lambda: g.store_queries({"c": NAMES})):
        calls[write]()
    expected = {"restore": "a", "merge": "abc", "revert": "ac"}[write]
    assert "".join(sorted(texts(g))) == expected


@pytest.mark.stored
def test_data_and_queries_are_written_at_once(racing: Graph) -> None:
    g = racing
    with at_point("before put", lambda: g.store_queries({"a": NAMES})):
        people(g, "A")
    assert (texts(g), g.count("Person")) == ({"a": NAMES}, 1)
