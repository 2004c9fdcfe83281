"""Owns how a schema plan is shown with colours. The words are those of the plan."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.cli.colours import Paint, fold
from omnigraph.plan.migrate import MigrationPlan, Tier, render_plan

_WIDTH = 80
_STYLES = {
    Tier.SAFE: "green",
    Tier.VALIDATED: "yellow",
    Tier.DESTRUCTIVE: "red",
    Tier.UNSUPPORTED: "wrong",
}


def plan_lines(plan: MigrationPlan, paint: Paint) -> Iterator[str]:
    for line in render_plan(plan).splitlines():
        tier = next((t for t in Tier if line.startswith(f"{t.value} ")), None)
        if tier is None:
            yield from fold(line, _WIDTH)  # only the first line may be too long
        elif not paint.on:
            yield line
        else:
            yield paint(_STYLES[tier], tier.value) + line[len(tier.value) :]
