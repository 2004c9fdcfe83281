"""Every field of every stored object replaced by hostile values: an answer or an error of ours, and
nothing outside of the root is touched. The objects are walked: a new field is in it by itself."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.query.adjacency.file import decode_endpoints, encode_endpoints
from omnigraph.errors import Corrupt, OmnigraphError
from omnigraph.store import history_rows
from omnigraph.store.fragments import FragmentMark
from omnigraph.store.versions import _unpack
from tests.cli.world import Program
from tests.hostile.damage import READS, SETTINGS, WRITES, build_graph
from tests.hostile.world import World

HOSTILE: tuple[Any, ...] = (
    "../../outside/documents",
    "/etc/passwd",
    "",
    "\u0000",
    "x" * 5000,
    -1,
    2**62,
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
    keys = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*.json"))]
    return [key for key in keys if not key.startswith("__jobs/")]


def read_object(data: bytes, key: str) -> Any:
    held = json.loads(_unpack(data, key))
    if isinstance(held, dict):
        held.pop("sum", None)  # who makes a hostile graph makes its checksums too
    return held


NAMED_BY_BYTES = {"_schema": "catalog", "_queries": "queries"}
"""Folders of objects that are named by their bytes, and the field of a version that names one."""


def put_content(world: World, folder: str, data: str) -> None:
    """Another one is taken for it only under its own name."""
    digest = hashlib.sha256(data.encode()).hexdigest()
    (world.root / folder / f"{digest}.json").write_text(data)
    use_content(world, folder, digest)


def use_content(world: World, folder: str, digest: str) -> None:
    world.change_head(lambda version: version.update({NAMED_BY_BYTES[folder]: digest}))


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
        data = json.dumps(replaced(value, path, new))
        folder = key.partition("/")[0]
        if folder in NAMED_BY_BYTES:
            put_content(world, folder, data)
        else:
            file.write_text(data)
        names = draw.sample(sorted(USES), 6)
        for name in names:
            use(world, USES[name], (key, path, str(new)[:40], name))
        if file.exists() or not key.startswith(("__recovery/", "__job/")):
            file.write_bytes(before)
        if folder in NAMED_BY_BYTES:
            use_content(world, folder, file.stem)


# The same through the program, which also shows what it reads.

COMMANDS = (
    *(["log", "--all"], ["stats"], ["branch", "list"], ["tag", "list"], ["snapshot"]),
    *(["show", "main"], ["jobs", "list"], ["recover", "list"], ["changes"], ["verify"]),
    *(["queries", "list"], ["queries", "show", "aged"], ["schema", "show"], ["search", "the"]),
    *(["queries", "run", "aged", "--param", "n=3"], ["history", "Person", "p1"]),
    *(["diff", "main~1", "main"], ["cleanup", "--dry-run"], ["optimize", "--dry-run"]),
    ["explain", "-e", "match { $p: Person } return { $p }"],
)
SHOWN = (*HOSTILE, 253_402_300_800_000_000, 2**63 - 1, "\x1b]0;x\x07", "a\nb")


def show_hostile(root: Path, count: int, seed: int) -> None:
    program, draw = Program(environment={"OMNIGRAPH_ROOT": str(root)}), random.Random(seed)
    world = World(root, root.parent / "outside")
    tries = []
    for key in objects_of(root):
        value = read_object((root / key).read_bytes(), key)
        tries += [(key, value, path, new) for path in places(value) for new in SHOWN]
    draw.shuffle(tries)
    for key, value, path, new in tries[:count]:
        file, data, folder = root / key, json.dumps(replaced(value, path, new)), key.split("/")[0]
        before, head = file.read_bytes(), (world.head, world.head.read_bytes())
        if folder in NAMED_BY_BYTES:
            put_content(world, folder, data)
        else:
            file.write_text(data)
        for words in draw.sample(COMMANDS, 3):
            ran = program(words)
            told = (key, path, str(new)[:40], words, ran)
            assert ran.code in (*range(9), 130), told
            for bad in ("Traceback", "bug", "panic", "\x1b", "\x07"):
                assert bad not in ran.out + ran.err, told
        head[0].write_bytes(head[1])
        file.write_bytes(before)


def test_the_program_shows_hostile_fields_or_names_their_object(archived: Path) -> None:
    show_hostile(archived, FEW, 17)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_program_shows_many_hostile_fields(archived: Path, seed: int) -> None:
    show_hostile(archived, 500, seed)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("__job/", ["jobs", "list"]),
        ("__recovery/", ["recover", "list"]),
        ("__manifest/main/", ["log", "--all"]),
        ("__manifest/side/", ["branch", "list"]),
    ],
)
def test_a_time_that_no_calendar_has_is_no_bug(
    archived: Path, tmp_path: Path, kind: str, words: list[str]
) -> None:
    root = tmp_path / "graph"
    shutil.copytree(archived, root)
    for file in (root / kind).glob("*.json"):
        held = read_object(file.read_bytes(), kind)
        part = held.get("commit", held)
        if "created_at" in part:
            part["created_at"] = 2**62
            file.write_text(json.dumps(held))
    ran = Program(environment={"OMNIGRAPH_ROOT": str(root)})(words)
    assert "bug" not in ran.err, ran
    assert "created_at" in ran.out + ran.err, ran


# What is no JSON: the archive of old versions, and the ends of edges beside their table.

NUMBERS = (-1, 0, 2**31 - 1, -(2**31), 2**62, -(2**63), None)
TEXTS = ("../../outside/documents", "", "\u0000", "x" * 5000, None)


def archived_tries(columns: dict[str, list[Any]]) -> Iterator[tuple[str, int, Any]]:
    """Each cell of an archive, with what an attacker could put there."""
    for name, cells in columns.items():
        for row, held in enumerate(cells):
            news: list[Any] = [None]
            if name == "rest":
                rest = json.loads(held)
                news += [
                    json.dumps(replaced(rest, path, new)).encode()
                    for path in places(rest)
                    for new in HOSTILE
                ]
                news += [b"", b"{", b"[" * 50_000, b"\xff"]
            elif name == "pins":
                news += [[], [2**64 - 1], [0] * 1000]
            elif name == "writer":
                news += [b"\xff" * 6, b"\0" * 6]
            elif name in ("kind", "actor", "message"):
                news += TEXTS
            else:
                news += [n for n in NUMBERS if n is None or name != "began" or abs(n) < 2**31]
            yield from ((name, row, new) for new in news)


def attack_archive(root: Path, count: int, seed: int) -> None:
    (path,) = (root / "__history" / "main").iterdir()
    whole = path.read_bytes()
    columns, first = history_rows._unpack(whole, path.name)
    draw = random.Random(seed)
    tries = list(archived_tries(columns))
    draw.shuffle(tries)
    for name, row, new in tries[:count]:
        changed = columns | {name: [*columns[name][:row], new, *columns[name][row + 1 :]]}
        try:
            path.write_bytes(history_rows._pack(changed, str(first).encode()))
        except (pa.ArrowInvalid, OverflowError):
            continue  # no column holds it
        for told in ("log", "rows of a tag", "diff", "changes", "verify deep", "dry cleanup"):
            try:
                with omnigraph.open(root, settings=SETTINGS, mode="r") as g:
                    (READS | WRITES)[told](g)
            except OmnigraphError:
                pass
            except Exception as error:
                raise AssertionError((name, row, str(new)[:80], told)) from error
    path.write_bytes(whole)


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("archived") / "graph"
    build_graph(root)
    return root


def test_hostile_cells_of_an_archive_get_an_answer_or_an_error_of_ours(archived: Path) -> None:
    attack_archive(archived, FEW, 17)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_many_hostile_cells_of_an_archive(archived: Path, seed: int) -> None:
    attack_archive(archived, 80, seed)


def test_an_archive_with_unsound_columns_is_told(archived: Path) -> None:
    """Offsets that lead out of their buffers would end the process."""
    (path,) = (archived / "__history" / "main").iterdir()
    whole = path.read_bytes()
    with pa.input_stream(pa.py_buffer(whole), compression="zstd") as unpacked:
        held = bytearray(unpacked.read())
    rows = pa.ipc.open_stream(bytes(held)).read_all()
    offsets = rows["pins"].chunk(0).buffers()[1].to_pybytes()
    place = bytes(held).index(offsets)
    for number in (2**30, -5):
        held[place + 4 : place + 8] = number.to_bytes(4, "little", signed=True)
        path.write_bytes(pa.compress(bytes(held), codec="zstd", asbytes=True))
        with (
            omnigraph.open(archived, settings=SETTINGS, mode="r") as g,
            pytest.raises(Corrupt, match="__history/main"),
        ):
            list(g.log(all=True))
    path.write_bytes(whole)


@pytest.mark.parametrize("number", [-1, 5, 2**31 - 1])
def test_ends_of_edges_that_lead_nowhere_are_not_believed(number: int) -> None:
    mark = FragmentMark(0, ("a.lance",), None, 1, 1)
    ids = pa.array(["a", "b"])
    sound, wrong = np.array([1]), np.array([number])
    assert decode_endpoints(encode_endpoints(ids, ids, [(mark, sound, sound)])) is not None
    assert decode_endpoints(encode_endpoints(ids, ids, [(mark, sound, wrong)])) is None
    unsound = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")]
    )
    assert decode_endpoints(encode_endpoints(unsound, ids, [(mark, sound, sound)])) is None


def test_a_version_that_says_it_is_huge_is_told_and_not_unpacked() -> None:
    packed = pa.compress(b"{}" * 100, codec="zstd", asbytes=True)
    with pytest.raises(Corrupt, match="cannot be in it"):
        _unpack((2**32 - 1).to_bytes(4, "big") + packed, "__manifest/main/x.json")


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
