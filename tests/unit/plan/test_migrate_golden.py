"""Plans as people read them: pairs of schemas with the plan between them.

`UPDATE_GOLDEN=1` writes the plans anew; read the difference before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import declared
from omnigraph.model.schema import Schema, canonical
from omnigraph.plan.migrate import apply_steps, plan_migration, render_plan

GOLDEN = Path(__file__).parents[2] / "golden" / "plan"
CASES = sorted(path.name.removesuffix(".before.pg") for path in GOLDEN.glob("*.before.pg"))


def read(name: str) -> Schema:
    checked = compile_schema((GOLDEN / name).read_text(encoding="utf-8"))
    assert checked.schema is not None, checked.diagnostics
    return checked.schema


def shown(case: str) -> str:
    """The plan for types that may be empty, and for types that have entities where that differs."""
    before, after = read(f"{case}.before.pg"), read(f"{case}.after.pg")
    accepted = apply_steps(None, plan_migration(None, before).steps)
    unknown = plan_migration(accepted, after)
    full = plan_migration(accepted, after, populated={t.table_key for t in accepted.types})
    if not unknown.unsupported:
        assert declared(apply_steps(accepted, unknown.steps)) == canonical(after)
    if full == unknown:
        return render_plan(unknown)
    return f"{render_plan(unknown)}\n=== where the types have entities ===\n\n{render_plan(full)}"


@pytest.mark.parametrize("case", CASES)
def test_the_plan_is_the_one_that_was_agreed(case: str) -> None:
    text = shown(case)
    path = GOLDEN / f"{case}.plan"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES)
def test_every_line_fits_into_eighty_columns(case: str) -> None:
    assert max(len(line) for line in shown(case).splitlines()) <= 80


def test_the_golden_plans_show_every_kind_of_step() -> None:
    codes = {
        word
        for case in CASES
        for word in (GOLDEN / f"{case}.plan").read_text(encoding="utf-8").split()
        if word.startswith("OG-")
    }
    expected = {f"OG-SC-{n}" for n in range(101, 116)}
    expected |= {f"OG-MF-{n}" for n in range(101, 110)}
    expected |= {"OG-DS-101", "OG-DS-102"}
    expected |= {f"OG-UN-{n}" for n in (101, 102, 103, 104, 105, 106, 108)}
    assert codes >= expected
