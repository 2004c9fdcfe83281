"""Owns stories: a few steps that are drawn together, because by chance they seldom meet."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from tests.sim.world.hands import BRANCHES
from tests.sim.world.past import Line
from tests.sim.world.refs import Ref
from tests.sim.world.schemas import SPARE
from tests.sim.world.statements import Statement, Where
from tests.sim.world.steps import Step
from tests.sim.world.writing import NAMES

if TYPE_CHECKING:
    from tests.sim.world.world import World

Told = list[tuple[str, Mapping[str, Any]]]
UNPROTECTED = Line(0, [], 0)
VALUES: dict[str, Any] = {"I64": 5, "String": "five"}


def draw_story(world: World, chance: Random, number: int) -> list[Step]:
    """By one handle, one step after the other. Nothing, where there is no room for one."""
    told = chance.choice(STORIES)(world, chance)
    used = {op for op, _ in told}
    if used & world.without:
        return []
    by = chance.choice(("long", "fold", "late"))
    return [Step(number + at, op, by, args) for at, (op, args) in enumerate(told)]


def _two_meanings(world: World, chance: Random) -> Told:
    """Two branches give one name to values of two kinds, over files that they share."""
    branches = sorted(world.past.lines)
    if len(branches) < 2:
        return []
    name, pair = chance.choice(SPARE), chance.sample(branches, 2)
    told: Told = []
    for branch, kind in zip(pair, chance.sample(sorted(VALUES), 2), strict=True):
        told += [_added(branch, name, kind), _given(chance, branch, name, kind)]
    return told + [("query", {"ref": Ref("head", one), "roll": 0}) for one in (*pair, pair[0])]


def _forgotten(world: World, chance: Random) -> Told:
    """A property comes, another branch goes back to before it, and its merge takes it away; then
    one of that name comes again."""
    free = [one for one in BRANCHES if one not in world.past.lines | world.past.tags]
    if not free:
        return []
    branch, other, name = chance.choice(sorted(world.past.lines)), free[0], chance.choice(SPARE)
    kind, again = chance.choice(sorted(VALUES)), chance.choice(sorted(VALUES))
    return [
        _added(branch, name, kind),
        _given(chance, branch, name, kind),
        ("create_branch", {"name": other, "from": Ref("head", branch)}),
        ("restore", {"branch": other, "via": "graph", "ref": Ref("back", branch, 2)}),
        _given(chance, branch, "age", "I64"),
        ("merge", _merged(other, branch)),
        _added(branch, name, again),
        ("query", {"ref": Ref("head", branch), "roll": 0}),
    ]


def _said_again(world: World, chance: Random) -> Told:
    """A call is sent again, when what it did is done and others with keys of their own came since:
    it is answered as the first time. Another call with its key is refused."""
    branch, mark = chance.choice(sorted(world.past.lines)), f"{chance.getrandbits(32):08x}"
    first = _keyed(branch, f"k{mark}", "append", {"name": f"n{mark}", "age": 1})
    told: Told = [first]
    for number in range(chance.choice((0, 2, 3))):
        told += [
            _keyed(branch, f"k{mark}.{number}", "upsert", {"name": NAMES[number], "age": number}),
            ("wait", {"seconds": chance.choice((0.5, 60.0))}),
        ]
    if chance.random() < 0.4:
        gone = Statement("delete", "Person", where=Where("name", "=", f"n{mark}"))
        told.append(("write", {"branch": branch, "statements": (gone,)}))
    if chance.random() < 0.3:
        told.append(("cleanup", {"keep": 1, "older_than": 0.0, "dry_run": False}))
    return [*told, first, _keyed(branch, f"k{mark}", "append", {"name": f"n{mark}", "age": 2})]


def _keyed(branch: str, key: str, verb: str, row: Mapping[str, Any]) -> tuple[str, Any]:
    rows = (Statement(verb, "Person", (row,)),)
    return "write", {"branch": branch, "key": key, "statements": rows}


def _namesake(world: World, chance: Random) -> Told:
    """Somebody holds a branch, which is deleted, and another one gets its name."""
    name = chance.choice(BRANCHES[1:])
    if name in world.past.tags or world.past.lines.get(name, UNPROTECTED).protected:
        return []
    made = ("create_branch", {"name": name, "from": Ref("head", "main")})
    held = {"branch": name, "via": "held"}
    row = {"name": chance.choice(NAMES), "age": chance.randrange(4)}
    late: Told = [
        ("write", held | {"statements": (Statement("upsert", "Person", (row,)),)}),
        ("restore", held | {"ref": Ref("back", "main", 1)}),
        ("merge", {**_merged("main", name), **held}),
        ("delete_branch", held),
    ]
    told: Told = [] if name in world.past.lines else [made]
    told += [("hold_branch", {"branch": name}), ("delete_branch", {"branch": name, "via": "graph"})]
    return [*told, made, *chance.sample(late, 2)]


def _added(branch: str, name: str, kind: str) -> tuple[str, Mapping[str, Any]]:
    args = {"branch": branch, "via": "graph", "edit": "add", "type": "Person", "loss": False}
    return "apply_schema", args | {"name": name, "kind": kind}


def _given(chance: Random, branch: str, name: str, kind: str) -> tuple[str, Mapping[str, Any]]:
    rows = ({"name": chance.choice(NAMES), name: VALUES[kind]},)
    return "write", {"branch": branch, "statements": (Statement("upsert", "Person", rows),)}


def _merged(source: str, into: str) -> Mapping[str, Any]:
    args = {"branch": into, "via": "graph", "source": source}
    return args | {"strategy": "theirs", "dry_run": False}


STORIES = (_two_meanings, _forgotten, _said_again, _namesake)
