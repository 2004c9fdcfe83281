"""Owns the value that the comparison of one type works on, and what its parts share."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.schema import EdgeDecl, NodeDecl
from omnigraph.plan.migrate.steps import (
    AddProperty,
    ChangeKey,
    MigrationStep,
    Unsupported,
    WidenProperty,
)

CATALOG_ONLY = "only the catalog changes"
MOVE_TO_NEW_TYPE = "add a new type with the key you want, move the entities, then drop this one"


@dataclass(frozen=True, kw_only=True)
class TypeChange:
    """One type before and after. `ends` maps renamed node types old to new, `inherited` names the
    properties that come from interfaces, `populated` is None when nobody knows."""

    base: Catalog
    kind: str
    before: GraphType
    after: NodeDecl | EdgeDecl
    ends: dict[str, str] = field(default_factory=dict)
    inherited: frozenset[str] = frozenset()
    populated: bool | None = None

    @property
    def table(self) -> str:
        return f"{self.kind}:{self.after.name}"


def when_empty(
    change: TypeChange,
    step: AddProperty | WidenProperty | ChangeKey,
    *,
    code: str,
    remedy: str,
    property_name: str | None = None,
) -> MigrationStep:
    """A step that needs an empty type, or the refusal of it where the type is known to be full."""
    if not change.populated:
        return step
    return Unsupported(
        type=change.table, code=code, property=property_name, reason=step.reason, help=remedy
    )
