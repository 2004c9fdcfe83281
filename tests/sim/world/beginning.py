"""Owns how every world begins: a schema, some rows, a second branch."""

from __future__ import annotations

from tests.sim.world.model import Declared, DeclaredType, Text
from tests.sim.world.refs import Ref
from tests.sim.world.statements import Statement
from tests.sim.world.steps import Step

FIRST: Text = (
    DeclaredType(
        "Person",
        "key",
        (
            Declared("name", "String", required=True),
            Declared("age", "I64"),
            Declared("code", "I64", unique=True),
        ),
    ),
    DeclaredType(
        "Doc", "key", (Declared("name", "String", required=True), Declared("data", "Blob"))
    ),
    DeclaredType(
        "Note", "mark", (Declared("mark", "String", required=True), Declared("text", "String"))
    ),
    DeclaredType("Knows", "ends", (Declared("since", "I64"),), ends=("Person", "Person"), card=3),
    DeclaredType(
        "Met",
        "mark",
        (Declared("mark", "String", required=True), Declared("place", "String")),
        ends=("Person", "Person"),
    ),
)
BEGINNING = (
    Step(
        0,
        "write",
        "long",
        {
            "branch": "main",
            "statements": (
                Statement("append", "Person", tuple({"name": one, "age": 1} for one in "abc")),
                Statement("append", "Knows", ({"from": "a", "to": "b"}, {"from": "b", "to": "c"})),
                Statement("append", "Note", ({"mark": "first"},)),
            ),
        },
    ),
    Step(0, "create_branch", "long", {"name": "x", "from": Ref("head", "main")}),
)
"""What every world begins with, so that there is something to change and to merge."""
