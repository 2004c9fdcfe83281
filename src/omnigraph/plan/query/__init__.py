"""How a read is answered: checked tree, logical plan, rules, ordered steps. Pure."""

from __future__ import annotations

from omnigraph.plan.query.order import ROW, argument_variables, plan_listing, plan_read
from omnigraph.plan.query.steps import PatternPlan, Plan, Step

__all__ = ["ROW", "PatternPlan", "Plan", "Step", "argument_variables", "plan_listing", "plan_read"]
