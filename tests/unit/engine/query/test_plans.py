"""Plans decide how fast an answer comes, never which: without any rule, in any order, it is the
same. They are made once, and again when tables have changed much."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.engine.query import prepare
from omnigraph.engine.query.prepare import Preparations
from omnigraph.lang.gq import compile_query
from omnigraph.plan.query import order, plan_read, rules
from omnigraph.plan.query.logical import Pattern, Query, pattern_variables
from tests.unit.engine.query.people import crowd, fill, graph
from tests.unit.lang.gq.world import SCHEMA
from tests.unit.plan.query.test_golden_plans import FILES, question

PARAMETERS: dict[str, dict[str, Any]] = {
    "by_ids": {"ids": ["p1", "p2", "nobody"]},
    "parameters": {"from": 10, "n": 1000},
}
MORE = {
    "many things": """
        match { $p: Person  $p.age > 5 and ($p.happy or $p.status = "open")  $p $k:knows $q
                $q.name in ["p1", "p2", "p3", "p4"]  optional { $q worksAt $c  $c.size > 3 } }
        return { $q.name, $c.name, count($p) as n, max($k.since) as m }
    """,
    "keys on both ends": """
        match { $a: Person {name: "p1"}  $b: Person {name: "p2"}  $a <knows>{0,4} $b
                $a.age != 3 and $b.age is not null }
        return { $a.name, $b.name }
    """,
    "blocks in blocks": """
        match { $p: Person  not { $p knows $q  not { $q worksAt $_ } }
                count { $p <likes> $f  exists { $f knows $_ } } >= 1 }
        return { $p.name }
    """,
}
QUESTIONS = {path.stem: question(path) for path in FILES} | MORE


@pytest.fixture(scope="module")
def people() -> Iterator[Graph]:
    chance = Random(5)
    names = [f"p{n}" for n in range(18)] + ["Alice"]
    firms = [f"c{n}" for n in range(5)] + ["Acme"]

    def edges(count: int, sources: list[str], targets: list[str]) -> list[dict[str, Any]]:
        return [
            {"from": chance.choice(sources), "to": chance.choice(targets)} for _ in range(count)
        ]

    with graph(SCHEMA) as g:
        fill(g, {
            "Person": [
                {
                    "name": name,
                    "age": chance.choice([None, 3, 20, 35, 95]),
                    "tags": ["x"] * chance.randint(0, 2),
                    "status": chance.choice(["open", "closed", None]),
                    "bio": chance.choice(["text", None]),
                    "happy": chance.choice([True, False, None]),
                }
                for name in names
            ],
            "Company": [{"name": n, "size": chance.choice([None, 1, 50])} for n in firms],
            "City": [{"id": "b", "name": "Bern"}, {"id": "x", "name": None}],
        })  # fmt: skip
        fill(g, {
            "Knows": [e | {"since": chance.choice([None, 1999, 2010])}
                      for e in edges(60, names, names)],
            "Likes": [e | {"since": 2005} for e in edges(40, names, names)],
            "WorksAt": edges(20, names, firms),
            "Contains": edges(6, ["b", "x"], firms),
        })  # fmt: skip
        yield g


def plain(value: Any) -> str:
    return repr(sorted(map(repr, value)) if isinstance(value, list) else value)


def answers(g: Graph, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What every question gives, with plans that are made now."""
    Preparations.shared_by(g._session)._held.clear()
    return {name: answer(g, name) for name in QUESTIONS}


def answer(g: Graph, name: str) -> list[str]:
    text = QUESTIONS[name]
    cut = re.search(r"\b(limit|offset) ", text) and " order " not in text
    rows = g.query(text, params=PARAMETERS.get(name)).to_pylist()
    if cut:  # any rows will do: how many is all that is the same
        return [str(len(rows))]
    listed = ["; ".join(map(plain, row.values())) for row in rows]
    return listed if " order " in text else sorted(listed)


@pytest.fixture(scope="module")
def wanted(people: Graph) -> dict[str, list[str]]:
    return {name: answer(people, name) for name in QUESTIONS}


def test_the_questions_have_answers(wanted: dict[str, list[str]]) -> None:
    """Else nothing is compared below; a few may be empty."""
    assert sum(bool(rows) for rows in wanted.values()) > len(wanted) - 4


@pytest.mark.parametrize("rule", rules.PATTERN_RULES, ids=lambda rule: rule.__name__)
def test_without_a_rule_the_answers_are_the_same(
    people: Graph,
    wanted: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    rule: Callable[[Pattern], Pattern],
) -> None:
    kept = tuple(other for other in rules.PATTERN_RULES if other is not rule)
    monkeypatch.setattr(rules, "PATTERN_RULES", kept)
    assert answers(people, monkeypatch) == wanted


def test_without_any_rule_the_answers_are_the_same(
    people: Graph, wanted: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_needed(query: Query) -> Query:
        needed = frozenset(v.id for v in pattern_variables(query.pattern))
        return replace(query, pattern=replace(query.pattern, needed=needed, counted=False))

    monkeypatch.setattr(rules, "PATTERN_RULES", ())
    monkeypatch.setattr(rules, "count_rows", lambda query: query)
    monkeypatch.setattr(rules, "mark_needed", all_needed)
    monkeypatch.setattr(order, "_with_edge_scans", lambda steps: steps)
    assert answers(people, monkeypatch) == wanted


@pytest.mark.parametrize(
    ("module", "name"),
    [(rules, "count_rows"), (order, "_with_edge_scans")],
    ids=["counting", "edges"],
)
def test_without_one_of_the_other_rules_too(
    people: Graph,
    wanted: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
) -> None:
    monkeypatch.setattr(module, name, lambda given: given)
    assert answers(people, monkeypatch) == wanted


@pytest.mark.parametrize("seed", range(6))
def test_in_any_order_of_steps_the_answers_are_the_same(
    people: Graph, wanted: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = Random(seed)
    real = order._Steps._choices

    def shuffled(steps: order._Steps) -> list[order._Choice]:
        return [order._Choice(chance.random(), choice.step) for choice in real(steps)]

    monkeypatch.setattr(order._Steps, "_choices", shuffled)
    assert answers(people, monkeypatch) == wanted


def test_never_counting_neighbours_gives_the_same_counts(
    people: Graph, wanted: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order._Steps, "_only_counted", lambda *given: False)
    assert answers(people, monkeypatch) == wanted


# Counting without listing


CHAIN = "match { $a: Person  $a knows $b  $b knows $c } return { count($c) as n }"


def test_the_paths_of_a_count_are_never_listed() -> None:
    with graph() as g:
        people, edges = 200, 8000
        fill(g, crowd(people, edges))
        result = g.query(CHAIN)
        shown = result.explain(analyze=True)
        steps = shown[shown.index("steps\n") : shown.index("then\n")]
        assert steps.count("count neighbours") == 2
        rows = [int(n.replace(",", "")) for n in re.findall(r"\((?:.*?)([\d,]+) rows?", steps)]
        assert len(rows) == 4
        assert max(rows) <= people
        assert result.one()["n"] > 100 * people
        summary = shown.splitlines()[-1]
        assert summary.startswith("1 row in ")
        assert "expanded by adjacency" in summary


def test_analyzing_tells_of_every_step_what_it_did(people: Graph) -> None:
    text = QUESTIONS["optional"]
    shown = people.query(text).explain(analyze=True)
    steps = shown[shown.index("steps\n") : shown.index("then\n")].splitlines()[1:]
    assert all(re.search(r"\([\d,]+ rows?, [\d.]+ ms", line) for line in steps), shown
    nobody = text.replace("Alice", "nobody")
    assert "not reached" in people.query(nobody).explain(analyze=True)


# Made once


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was parsed and planned, in order."""
    found: list[str] = []

    def compiling(*given: Any) -> Any:
        found.append("parsed")
        return compile_query(*given)

    def planning(*given: Any) -> Any:
        found.append("planned")
        return plan_read(*given)

    monkeypatch.setattr(prepare, "compile_query", compiling)
    monkeypatch.setattr("omnigraph.plan.query.plan_read", planning)
    return found


def test_a_query_is_parsed_and_planned_once(made: list[str]) -> None:
    text = "query q($n: String) { match { $p: Person {name: $n} } return { $p.name } }"
    with graph() as g:
        fill(g, {"Person": [{"name": f"p{n}"} for n in range(20)]})
        for n in range(5):
            assert g.query(text, params={"n": f"p{n}"}).one() == {"p.name": f"p{n}"}
        assert made == ["parsed", "planned"]
        fill(g, {"Person": [{"name": "another"}]})  # hardly larger
        assert g.query(text, params={"n": "another"}).one() == {"p.name": "another"}
        assert made == ["parsed", "planned"]


def test_a_query_is_planned_again_when_its_tables_have_grown_much(made: list[str]) -> None:
    text = "match { $p: Person  $p worksAt $c } return { $p.name, $c.name }"
    with graph() as g:
        fill(g, {"Person": [{"name": "p"}], "Company": [{"name": f"c{n}"} for n in range(40)]})
        fill(g, {"WorksAt": [{"from": "p", "to": "c1"}]})
        small = g.query(text)
        assert len(small) == 1
        fill(g, {"Person": [{"name": f"p{n}"} for n in range(2000)]})
        large = g.query(text)
        assert len(large) == 1
        assert made == ["parsed", "planned", "planned"]
        assert small.explain() != large.explain()
        fill(g, {"Person": [{"name": "one more"}]})
        g.query(text)
        assert made == ["parsed", "planned", "planned"]


def test_a_query_is_parsed_again_under_another_schema(made: list[str]) -> None:
    text = "match { $p: Person } return { $p.name }"
    with graph("node Person { name: String @key }") as g:
        g.query(text)
        before = g.snapshot().commit.id
        g.apply_schema("node Person { name: String @key  age: I64? }")
        g.query(text)
        g.at(f"main@{before}").query(text)
        assert made == ["parsed", "planned", "parsed", "planned"]


def test_only_so_many_queries_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "_KEPT", 5)
    with graph() as g:
        for n in range(12):
            g.query(f"match {{ $p: Person }} return {{ $p.name }} limit {n}")
        assert len(Preparations.shared_by(g._session)._held) == 5
