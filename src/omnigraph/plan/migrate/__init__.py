"""Schema changes: plan them, apply them to a catalog, show them. Pure; no data is touched here."""

from omnigraph.plan.migrate.apply import apply_steps
from omnigraph.plan.migrate.planner import plan_between, plan_migration
from omnigraph.plan.migrate.steps import (
    MigrationPlan,
    MigrationStep,
    Tier,
    Unsupported,
    requires_empty,
)
from omnigraph.plan.migrate.text import render_plan, step_text

__all__ = [
    "MigrationPlan",
    "MigrationStep",
    "Tier",
    "Unsupported",
    "apply_steps",
    "plan_between",
    "plan_migration",
    "render_plan",
    "requires_empty",
    "step_text",
]
