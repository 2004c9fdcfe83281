"""Owns the operations on schemas: properties and types that come, go and get other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from tests.sim.world import migration, model
from tests.sim.world.hands import draw_place, foresee_place, state_of, take
from tests.sim.world.model import Declared, DeclaredType, Refused, State, Text, Unsure
from tests.sim.world.steps import Fault, Operation, Record, Step, operation

if TYPE_CHECKING:
    from tests.sim.world.world import World

SPARE = ("p", "q")
"""Names of properties that come and go, of whatever kind."""
SPARE_TYPES = ("Word", "Place")


def draw_schema(world: World, chance: Random) -> dict[str, Any] | None:
    args = draw_place(world, chance)
    if args["branch"] not in world.past.lines:
        return None
    state = state_of(world, args["branch"])
    edit = chance.choices(
        ("add", "drop", "rename", "add type", "drop type", "rename type"), (8, 5, 2, 1.5, 1, 1)
    )[0]
    many = [8 if one.name == "Person" else 1 for one in state.types]
    args |= {"edit": edit, "type": chance.choices(state.types, many)[0].name}
    kind = state.type(args["type"])
    spare = [one.name for one in kind.properties if one.name in SPARE]
    match edit:
        case "add":
            args["name"], args["kind"] = _draw_property(world, chance, kind)
            if args["kind"] == "I64" and chance.random() < 0.3:
                args["default"] = 7
        case "drop" | "rename":
            if not spare:
                return None
            args["name"] = chance.choice(spare)
            args["to"] = chance.choice([one for one in SPARE if one != args["name"]])
        case _:
            args["type"], args["to"] = chance.sample(SPARE_TYPES, 2)
    args["loss"] = edit in ("drop", "drop type") and chance.random() < 0.2
    return args


def _draw_property(world: World, chance: Random, kind: model.Type) -> tuple[str, model.Kind]:
    """One of the spare names, often one that another branch has, for values of the other kind: two
    branches may come to give one name two meanings."""
    held = {one.name for one in kind.properties}
    elsewhere: list[tuple[str, model.Kind]] = [
        (one.name, "String" if one.declared.kind == "I64" else "I64")
        for line in sorted(world.past.lines)
        for other in state_of(world, line).types
        if other.uid == kind.uid
        for one in other.properties
        if one.name in SPARE and one.name not in held
    ]
    if elsewhere and chance.random() < 0.5:
        return chance.choice(elsewhere)
    return chance.choice(SPARE), chance.choice(("I64", "String"))


def edit_text(types: Text, args: Mapping[str, Any]) -> Text:
    """The text that a user would write, who has this one before him."""
    match args["edit"]:
        case "add":
            new = Declared(args["name"], args["kind"], args.get("default"))
            return _edit(types, args["type"], lambda one: (*one, new))
        case "drop":
            return _edit(
                types, args["type"], lambda one: tuple(p for p in one if p.name != args["name"])
            )
        case "rename":
            return _edit(
                types,
                args["type"],
                lambda one: tuple(
                    replace(p, name=args["to"], rename_from=p.name) if p.name == args["name"] else p
                    for p in one
                ),
            )
        case "add type":
            word = Declared("word", "String", required=True)
            new_type = DeclaredType(args["type"], "key", (word, Declared("n", "I64")))
            nodes = [one for one in types if one.ends is None]
            return (*nodes, new_type, *(one for one in types if one.ends is not None))
        case "drop type":
            return tuple(one for one in types if one.name != args["type"])
    return tuple(
        replace(one, name=args["to"], rename_from=one.name) if one.name == args["type"] else one
        for one in types
    )


def _edit(types: Text, name: str, change: Any) -> Text:
    return tuple(
        replace(one, properties=change(one.properties)) if one.name == name else one
        for one in types
    )


def _text(world: World, args: Mapping[str, Any]) -> Text:
    line = world.past.lines.get(args["branch"])
    return edit_text(state_of(world, args["branch"] if line else "main").text(), args)


def _target(state: State, text: Text) -> State:
    names = [one.name for one in text]
    for one in text:
        held = [p.name for p in one.properties]
        if len(set(held)) < len(held) or names.count(one.name) > 1:
            raise Refused("a name is given twice", "invalid_schema")
    return migration.migrate(state, text)


def foresee_schema(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)
    before = state_of(world, step.args["branch"])
    if before.same_schema(_target(before, _text(world, step.args))):
        raise Unsure("nothing is to be done, whether it may be or not")
    foresee_place(world, step.args)


def perform_schema(world: World, g: Graph, record: Record) -> None:
    text = _text(world, record.args)
    record.facts["text"] = text
    hand = take(world, g, record.args)
    done = hand.call(
        "apply_schema",
        model.schema_text(text),
        message=record.step.label,
        actor=record.step.by,
        allow_data_loss=record.args["loss"],
    )
    record.facts["applied"] = done.applied


def schema_effect(world: World, record: Record, before: State, parents: tuple[str, ...]) -> State:
    return _target(before, record.facts["text"])


operation(
    Operation(
        "apply_schema",
        15,
        ("apply_schema",),
        draw_schema,
        perform_schema,
        foresee_schema,
        schema_effect,
    )
)


def perform_plan(world: World, g: Graph, record: Record) -> None:
    text = _text(world, record.args)
    plan = take(world, g, record.args).call("plan_schema", model.schema_text(text))
    before = state_of(world, record.args["branch"])
    try:
        after = _target(before, text)
    except (Refused, Unsure):
        return
    if bool(plan.steps) == before.same_schema(after):
        raise Fault(f"{record.step.label} plans {plan.steps}")


def foresee_plan(world: World, step: Step) -> None:
    foresee_place(world, step.args, writing=False)
    try:
        _target(state_of(world, step.args["branch"]), _text(world, step.args))
    except (Refused, Unsure):
        raise Unsure("a plan may say why it cannot be done, or the text be refused") from None


operation(
    Operation(
        "plan_schema",
        1,
        ("plan_schema",),
        draw_schema,
        perform_plan,
        foresee_plan,
        reads=True,
    )
)
