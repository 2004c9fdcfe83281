"""Golden plans: each file under tests/golden/plans holds a query, a line of dashes, and how it is
answered in a graph of known size. `UPDATE_GOLDEN=1` writes the answers anew."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from omnigraph.lang.gq.checked import Read
from omnigraph.plan.query import PatternPlan, Plan, Step, plan_read
from omnigraph.plan.query import steps as steps_module
from omnigraph.plan.query.explain import render_plan
from omnigraph.plan.query.steps import Degrees, Optional, Seek
from tests.unit.lang.gq.world import checked

GOLDEN = Path(__file__).parents[3] / "golden" / "plans"
FILES = sorted(GOLDEN.glob("*.plan"))
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
LINE = "\n----\n"

SIZES: Final = {
    "node:Person": 100_000,
    "node:Company": 1_000,
    "node:City": 50,
    "edge:Knows": 2_000_000,
    "edge:Likes": 300_000,
    "edge:WorksAt": 90_000,
    "edge:Contains": 1_000,
}


def planned(text: str, **sizes: int) -> Plan:
    body = checked(text).body
    assert isinstance(body, Read)
    return plan_read(body, SIZES | sizes)


def question(path: Path) -> str:
    return path.read_text(encoding="utf-8").split(LINE)[0]


def all_steps(plan: Plan) -> Iterator[Step]:
    def inside(block: PatternPlan) -> Iterator[Step]:
        for step in block.steps:
            yield step
            if isinstance(step, Optional):
                yield from inside(step.block)

    yield from inside(plan.pattern)
    for block in plan.inner.values():
        yield from inside(block)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_query_has_its_golden_plan(path: Path) -> None:
    text = question(path)
    found = f"{text}{LINE}{render_plan(planned(text))}\n"
    if UPDATE:
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


def test_every_kind_of_step_is_in_some_golden_plan() -> None:
    kinds = {re.sub(r"^.*\.", "", part.__name__) for part in steps_module.Step.__args__}
    found = {type(step).__name__ for path in FILES for step in all_steps(planned(question(path)))}
    assert found == kinds


def test_planning_is_the_same_each_time() -> None:
    for path in FILES:
        text = question(path)
        assert render_plan(planned(text)) == render_plan(planned(text))


# What the plans must be like, whatever their words


def kinds_of(plan: Plan) -> list[str]:
    return [type(step).__name__ for step in all_steps(plan)]


def test_the_count_of_a_chain_begins_in_the_middle_and_follows_nobody() -> None:
    plan = planned("match { $a: Person  $a knows $b  $b knows $c } return { count($c) as n }")
    assert kinds_of(plan) == ["Scan", "Degrees", "Degrees", "Keep"]
    first = plan.pattern.steps[0]
    assert isinstance(first, steps_module.Scan)
    assert first.variable.name == "b"


def test_what_is_asked_for_by_name_is_followed() -> None:
    plan = planned(
        "match { $a: Person  $a knows $b  $b knows $c } return { $c.name, count($a) as n }"
    )
    assert [s.backward for s in all_steps(plan) if isinstance(s, Degrees)] == [True]
    assert "Expand" in kinds_of(plan)


@pytest.mark.parametrize(
    "condition",
    [
        '$p.name = "Alice"',
        '"Alice" = $p.name',
        '$p.@id = "Alice"',
        '$p.name in ["Alice", "Bob"]',
        '$p.@id in ["Alice", "Bob"]',
        '$p.name = "Alice" and $p.age > 3',
        '($p.age > 3 and $p.name = "Alice") and $p.happy',
    ],
)
def test_a_key_is_sought_however_it_is_written(condition: str) -> None:
    plan = planned(f"match {{ $p: Person  $p knows $q  {condition} }} return {{ $q.name }}")
    first = plan.pattern.steps[0]
    assert isinstance(first, Seek)
    assert not any(step is not first and isinstance(step, Seek) for step in plan.pattern.steps)


@pytest.mark.parametrize(
    "condition",
    [
        '$p.name = "Alice" or $p.age > 3',
        '$p.name != "Alice"',
        "$p.name = $q.name",
        'not ($p.name = "Alice")',
        '$p.name + "" = "Alice"',
    ],
)
def test_what_is_no_key_is_not_sought(condition: str) -> None:
    plan = planned(f"match {{ $p: Person  $p knows $q  {condition} }} return {{ $q.name }}")
    assert "Seek" not in kinds_of(plan)


def test_the_smaller_side_comes_first() -> None:
    text = "match { $p: Person  $p worksAt $c } return { $p.name, $c.name }"
    few, many = planned(text), planned(text, **{"node:Company": 10_000_000})
    assert few.pattern.steps[0] != many.pattern.steps[0]


def test_a_plan_for_empty_tables_is_a_plan() -> None:
    for path in FILES:
        body = checked(question(path)).body
        assert isinstance(body, Read)
        assert render_plan(plan_read(body, {}))
