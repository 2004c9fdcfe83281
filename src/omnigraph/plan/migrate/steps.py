"""Owns the steps of a schema change: a closed union of values, each complete in itself.

A step tells the storage what to do to a table, the catalog what to become, and the user what it
means: `tier`, `code` and `reason`. Names are those after the plan's renames, except in drops.
All renames of one kind in a plan happen at once, so that two names can be swapped.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from omnigraph.lang.gq.stored import BrokenQuery
from omnigraph.model.catalog import GraphType, Property
from omnigraph.model.schema import Annotation, Card, Default, Embed, InterfaceDecl
from omnigraph.model.types import EnumType, PropertyType
from omnigraph.plan.migrate.constraints import Constraint


class Tier(StrEnum):
    """Safe cannot fail; validated is refused if existing data disagrees; destructive hides data
    (history keeps it); unsupported stops the whole plan."""

    SAFE = "safe"
    VALIDATED = "validated"
    DESTRUCTIVE = "destructive"
    UNSUPPORTED = "unsupported"


class _Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="step"):
    """`type` is a table key (`node:Person`) or `interface:Named`."""

    type: str
    reason: str
    tier: Tier = Tier.SAFE


class AddType(_Step, frozen=True, kw_only=True, tag="add_type"):
    """Create an empty table with the definition's columns."""

    definition: GraphType
    code: str = "OG-SC-101"


class RenameType(_Step, frozen=True, kw_only=True, tag="rename_type"):
    """Catalog only: the table keeps its place, edges follow the names of their ends."""

    id: str
    old: str
    new: str
    code: str = "OG-SC-102"


class ChangeType(_Step, frozen=True, kw_only=True, tag="change_type"):
    """Catalog only: the new values of all that describes a type; `changed` names those that
    differ."""

    changed: tuple[str, ...]
    implements: tuple[str, ...] = ()
    description: str | None
    instruction: str | None
    annotations: tuple[Annotation, ...]
    code: str = "OG-SC-103"


class DropType(_Step, frozen=True, kw_only=True, tag="drop_type"):
    """Take the table out of the graph; its versions stay in history."""

    id: str
    tier: Tier = Tier.DESTRUCTIVE
    code: str = "OG-DS-101"


class AddProperty(_Step, frozen=True, kw_only=True, tag="add_property"):
    """Add a column, of nulls or of one value. `index` is its place among the properties."""

    property: Property
    index: int
    fill: Default | None = None
    requires_empty: bool = False
    code: str = "OG-SC-104"


class RenameProperty(_Step, frozen=True, kw_only=True, tag="rename_property"):
    """Catalog only: the column keeps the name it was created with."""

    id: str
    old: str
    new: str
    code: str = "OG-SC-105"


class WidenProperty(_Step, frozen=True, kw_only=True, tag="widen_property"):
    """Write the values of one column, cast, to a new one; the old column is retired."""

    id: str
    property: str
    old: PropertyType
    new: PropertyType
    old_column: str
    new_column: str
    requires_empty: bool = False
    code: str = "OG-SC-106"


class ChangeEnum(_Step, frozen=True, kw_only=True, tag="change_enum"):
    """Catalog only; the removed values must not occur in the column."""

    id: str
    property: str
    column: str
    new: EnumType
    added: tuple[str, ...]
    removed: tuple[str, ...]
    code: str = "OG-SC-107"


class ChangeNullability(_Step, frozen=True, kw_only=True, tag="change_nullability"):
    """Catalog only; a column that becomes required must hold no null."""

    id: str
    property: str
    column: str
    nullable: bool
    code: str = "OG-SC-108"


class ChangeProperty(_Step, frozen=True, kw_only=True, tag="change_property"):
    """Catalog only: like ChangeType, for a property. A new default is for entities to come."""

    id: str
    property: str
    changed: tuple[str, ...]
    default: Default | None
    embed: Embed | None
    description: str | None
    instruction: str | None
    annotations: tuple[Annotation, ...]
    code: str = "OG-SC-109"


class ReorderProperties(_Step, frozen=True, kw_only=True, tag="reorder_properties"):
    """Catalog only: the order in which users see the properties that stay."""

    order: tuple[str, ...]
    code: str = "OG-SC-110"


class DropProperty(_Step, frozen=True, kw_only=True, tag="drop_property"):
    """Catalog only: the column is retired, its bytes go at the next rewrite of the table."""

    id: str
    property: str
    column: str
    tier: Tier = Tier.DESTRUCTIVE
    code: str = "OG-DS-102"


class ChangeKey(_Step, frozen=True, kw_only=True, tag="change_key"):
    """Catalog only, and only while the type has no entities: all ids would change."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    requires_empty: bool = True
    tier: Tier = Tier.VALIDATED
    code: str = "OG-MF-108"


class ChangeCard(_Step, frozen=True, kw_only=True, tag="change_card"):
    old: Card
    new: Card
    code: str = "OG-SC-111"


class AddConstraint(_Step, frozen=True, kw_only=True, tag="add_constraint"):
    """`columns` are those of the constraint's properties, in its order."""

    constraint: Constraint
    columns: tuple[str, ...]
    code: str = "OG-SC-112"


class DropConstraint(_Step, frozen=True, kw_only=True, tag="drop_constraint"):
    constraint: Constraint
    code: str = "OG-SC-113"


class SetInterface(_Step, frozen=True, kw_only=True, tag="set_interface"):
    """Catalog only: what changes in the nodes that implement it are steps of their own."""

    definition: InterfaceDecl
    is_new: bool
    code: str = "OG-SC-114"


class DropInterface(_Step, frozen=True, kw_only=True, tag="drop_interface"):
    code: str = "OG-SC-115"


class Unsupported(_Step, frozen=True, kw_only=True, tag="unsupported"):
    """A change that will not be made; `help` says what to do instead."""

    code: str
    help: str
    property: str | None = None
    tier: Tier = Tier.UNSUPPORTED


MigrationStep = (
    AddType
    | RenameType
    | ChangeType
    | DropType
    | AddProperty
    | RenameProperty
    | WidenProperty
    | ChangeEnum
    | ChangeNullability
    | ChangeProperty
    | ReorderProperties
    | DropProperty
    | ChangeKey
    | ChangeCard
    | AddConstraint
    | DropConstraint
    | SetInterface
    | DropInterface
    | Unsupported
)


class MigrationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`base` is the digest of the catalog that the plan is for; `notes` say what was ignored.
    `broken` are stored queries that would not run any more: while there is one, nothing is
    applied."""

    base: str
    steps: tuple[MigrationStep, ...] = ()
    notes: tuple[str, ...] = ()
    broken: tuple[BrokenQuery, ...] = ()

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        return tuple(step for step in self.steps if isinstance(step, Unsupported))

    @property
    def can_be_applied(self) -> bool:
        return not (self.unsupported or self.broken)

    def of_tier(self, tier: Tier) -> tuple[MigrationStep, ...]:
        return tuple(step for step in self.steps if step.tier is tier)


def requires_empty(step: MigrationStep) -> bool:
    """Whether the step may only run while its type has no entities."""
    return isinstance(step, AddProperty | WidenProperty | ChangeKey) and step.requires_empty
