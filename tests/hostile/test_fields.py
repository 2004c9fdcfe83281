"""Every field of every stored object replaced by hostile values: an answer or an error of ours, and
nothing outside of the root is touched. The objects are walked: a new field is in it by itself."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.store.versions import _unpack
from tests.hostile.damage import READS, WRITES
from tests.hostile.world import World

HOSTILE: tuple[Any, ...] = (
    "../../outside/documents",
    "/etc/passwd",
    "",
    "\u0000",
    "x" * 5000,
    -1,
    2**64,
    10**400,
    1.5,
    True,
    None,
    [],
    {},
    [[]],
    {"..": "../.."},
)
USES = {
    name: use
    for name, use in (READS | WRITES).items()
    if name not in ("blob", "rows of a tag", "diff", "history", "degrees")
}
FEW = 40


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*path, number))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(value)
    held = changed
    for step in path[:-1]:
        held = held[step]
    held[path[-1]] = new
    return changed


def objects_of(root: Path) -> list[str]:
    kinds = ("__manifest/main/", "__manifest/first/", "__manifest/side/", "_graph.json", "_schema/")
    keys = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*.json"))]
    return [key for key in keys if key.startswith((*kinds, "__recovery/", "__digests/"))]


def read_object(data: bytes, key: str) -> Any:
    held = json.loads(_unpack(data, key))
    if isinstance(held, dict):
        held.pop("sum", None)  # who makes a hostile graph makes its checksums too
    return held


def attack(world: World, count: int, seed: int) -> None:
    world.write_intent(branch="main", base=3, details={"files": "__spool/x"}, plan="{}")
    draw = random.Random(seed)
    tries = []
    for key in objects_of(world.root):
        value = read_object((world.root / key).read_bytes(), key)
        tries += [(key, value, path, new) for path in places(value) for new in HOSTILE]
    draw.shuffle(tries)
    for key, value, path, new in tries[:count]:
        file = world.root / key
        if not file.exists():
            continue  # a cleanup before took it
        before = file.read_bytes()
        file.write_text(json.dumps(replaced(value, path, new)))
        names = draw.sample(sorted(USES), 6)
        for name in names:
            use(world, USES[name], (key, path, str(new)[:40], name))
        if file.exists() or not key.startswith("__recovery/"):
            file.write_bytes(before)


def use(world: World, call: Callable[[Any], Any], told: tuple[Any, ...]) -> None:
    message = ""
    try:
        with world.open() as g:
            call(g)
    except OmnigraphError as error:
        message = str(error)
    except Exception as error:
        raise AssertionError(told) from error
    assert "Traceback" not in message, told


def test_hostile_fields_get_an_answer_or_an_error_of_ours(world: World) -> None:
    attack(world, FEW, 17)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_hostile_fields_get_an_answer_or_an_error_of_ours(world: World, seed: int) -> None:
    attack(world, 300, seed)
