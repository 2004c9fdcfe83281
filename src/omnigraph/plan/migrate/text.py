"""Owns how a plan reads for a person: plain lines of at most 80 characters, no colours."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import assert_never

from omnigraph.model.schema import Card, PropertyDecl
from omnigraph.model.types import type_text
from omnigraph.plan.migrate.constraints import constraint_text
from omnigraph.plan.migrate.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCard,
    ChangeEnum,
    ChangeKey,
    ChangeNullability,
    ChangeProperty,
    ChangeType,
    DropConstraint,
    DropInterface,
    DropProperty,
    DropType,
    MigrationPlan,
    MigrationStep,
    RenameProperty,
    RenameType,
    ReorderProperties,
    SetInterface,
    Tier,
    Unsupported,
    WidenProperty,
    requires_empty,
)

WIDTH = 80
_INDENT = " " * 24


def render_plan(plan: MigrationPlan) -> str:
    """The whole plan: a summary, the steps in order with tier, code and reason, the notes."""
    return "\n".join(line.rstrip() for line in _lines(plan)) + "\n"


def _lines(plan: MigrationPlan) -> Iterator[str]:
    yield _summary(plan)
    for step in plan.steps:
        yield ""
        label = f"{step.tier.value:<13}{step.code:<11}"
        yield from _wrapped(label, step_text(step))
        yield from _wrapped(_INDENT, step.reason)
        if requires_empty(step):
            yield from _wrapped(_INDENT, "possible only while the type has no entities")
        if isinstance(step, Unsupported):
            yield from _wrapped(_INDENT, f"Instead: {step.help}.")
    for query in plan.broken:
        yield ""
        yield from wrap(f"The stored query {query.name} would not run any more:", WIDTH)
        yield from query.message.splitlines()
    for note in plan.notes:
        yield ""
        yield from wrap(f"Note: {note}.", WIDTH)


def _wrapped(label: str, text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=label, subsequent_indent=_INDENT)


def _summary(plan: MigrationPlan) -> str:
    if not plan.steps:
        return "Nothing to change."
    counts = [(len(plan.of_tier(tier)), tier.value) for tier in Tier]
    parts = ", ".join(f"{count} {tier}" for count, tier in counts if count)
    steps = "1 step" if len(plan.steps) == 1 else f"{len(plan.steps)} steps"
    refused = "" if plan.can_be_applied else " Nothing will be applied."
    return f"{steps}: {parts}.{refused}"


def step_text(step: MigrationStep) -> str:
    """One line that says what the step does."""
    kind, _, name = step.type.partition(":")
    match step:
        case AddType(definition=definition):
            return f"add {kind} type {name} with {_count(len(definition.properties))}"
        case RenameType(old=old, new=new):
            return f"rename {kind} type {old} to {new}"
        case ChangeType(changed=changed):
            return f"change {', '.join(changed)} of {kind} type {name}"
        case DropType():
            return f"drop {kind} type {name}"
        case SetInterface(is_new=is_new):
            return f"{'add' if is_new else 'change'} interface {name}"
        case DropInterface():
            return f"drop interface {name}"
        case ChangeKey() | ChangeCard() | AddConstraint() | DropConstraint():
            return _constraint_step_text(name, step)
        case Unsupported(property=prop):
            return f"{kind} type {name}" if prop is None else f"property {name}.{prop}"
        case _:
            return _property_text(name, step)


def _constraint_step_text(
    name: str, step: ChangeKey | ChangeCard | AddConstraint | DropConstraint
) -> str:
    match step:
        case ChangeKey(old=old_key, new=new_key):
            return f"change the key of {name} from {_key(old_key)} to {_key(new_key)}"
        case ChangeCard(old=old_card, new=new_card):
            return f"change {name} from {_card(old_card)} to {_card(new_card)}"
        case AddConstraint(constraint=constraint):
            return f"add {constraint_text(constraint)} to {name}"
        case DropConstraint(constraint=constraint):
            return f"drop {constraint_text(constraint)} of {name}"
        case _:
            assert_never(step)


def _property_text(
    name: str,
    step: AddProperty
    | RenameProperty
    | WidenProperty
    | ChangeEnum
    | ChangeNullability
    | ChangeProperty
    | ReorderProperties
    | DropProperty,
) -> str:
    match step:
        case ReorderProperties(order=order):
            return f"reorder properties of {name}: {', '.join(order)}"
        case AddProperty(property=prop):
            return f"add property {name}.{_declaration(prop)}"
        case RenameProperty(old=old, new=new):
            return f"rename property {name}.{old} to {new}"
        case WidenProperty(property=prop_name, old=before, new=after):
            return f"widen {name}.{prop_name} from {type_text(before)} to {type_text(after)}"
        case ChangeEnum(property=prop_name, added=added, removed=removed):
            signs = [*(f"+{value}" for value in added), *(f"-{value}" for value in removed)]
            return f"change the values of {name}.{prop_name}: {' '.join(signs)}"
        case ChangeNullability(property=prop_name, nullable=nullable):
            return f"make {name}.{prop_name} {'nullable' if nullable else 'required'}"
        case ChangeProperty(property=prop_name, changed=changed):
            return f"change {', '.join(changed)} of {name}.{prop_name}"
        case DropProperty(property=prop_name):
            return f"drop property {name}.{prop_name}"
        case _:
            assert_never(step)


def _declaration(prop: PropertyDecl) -> str:
    return f"{prop.name}: {type_text(prop.type)}{'?' if prop.nullable else ''}"


def _count(properties: int) -> str:
    return "1 property" if properties == 1 else f"{properties or 'no'} properties"


def _key(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})" if names else "none"


def _card(card: Card) -> str:
    return f"@card({card.low}..{'' if card.high is None else card.high})"
