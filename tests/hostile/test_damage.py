"""A flipped or missing byte in any object: the right answer, or an error that names the object."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from tests.cli.world import Program
from tests.hostile.damage import READS, SETTINGS, WRITES, build_graph, mutations, stored_objects

LOOKS = {name: WRITES[name] for name in ("verify", "verify deep", "dry cleanup")}
UNREAD = ("__job/", "__jobs/", "__recovery/", "/_refs/", "latest_version_hint.json")
"""What no answer rests on."""
FEW = 8


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    root = tmp_path_factory.mktemp("damage") / "graph"
    build_graph(root)
    with omnigraph.open(root, settings=SETTINGS) as g:
        right = {name: read(g) for name, read in READS.items()}
    return root, right


def check(root: Path, key: str, how: str, right: dict[str, Any], *, gone: bool) -> None:
    checked = ".lance" in key or ".blob" in key or "_deletions" in key or key.endswith(".json")
    for name, use in (READS | LOOKS).items():
        found: Any = None
        try:
            with omnigraph.open(root, settings=SETTINGS, mode="r") as g:
                found = use(g)
        except OmnigraphError as error:
            failure = str(error)
        else:
            failure = ""
        if failure:
            # Of what is gone, the place where it was looked for is told.
            assert gone or _names(failure, key), (key, how, name, failure)
            continue
        if name == "verify deep":
            if not found.ok and not gone:
                told = " ".join(f"{one.object} {one.message}" for one in found.errors)
                assert _names(told, key), (key, how, told)
            if key.startswith(("nodes/", "edges/")) and "/_versions/" not in key and checked:
                assert gone or not found.ok or any(part in key for part in UNREAD), (key, how)
        elif name in right and not gone and "/data/" not in key:
            same = found == right[name] or "/_deletions/" in key or "/_indices/" in key
            beside = key.startswith(("__recovery/", "__job/"))
            assert same or "/_versions/" in key or beside, (key, how, name)


def _names(text: str, key: str) -> bool:
    """By its key, or as the table that it is a version of."""
    return key in text or key.rsplit("/", 2)[0] in text


def run_some(root: Path, place: Path, right: dict[str, Any], seed: int, count: int) -> None:
    draw = random.Random(seed)
    shutil.copytree(root, place)
    tries = []
    for key in stored_objects(root):
        data = (root / key).read_bytes()
        changed = [(key, how, change(data)) for how, change in mutations(draw, len(data))]
        tries += [one for one in changed if one[2] != data]
    draw.shuffle(tries)
    for key, how, new in tries[:count]:
        if new is None:
            (place / key).unlink()
        else:
            (place / key).write_bytes(new)
        check(place, key, how, right, gone=new is None)
        (place / key).write_bytes((root / key).read_bytes())


def test_damage_gives_the_right_answer_or_an_error_that_names_the_object(
    built: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    run_some(built[0], tmp_path / "graph", built[1], 17, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_much_damage_gives_the_right_answer_or_an_error_that_names_the_object(
    built: tuple[Path, dict[str, Any]], tmp_path: Path, seed: int
) -> None:
    run_some(built[0], tmp_path / "graph", built[1], seed, 120)


def test_the_program_tells_damage_with_the_code_of_damage(
    built: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    root = tmp_path / "graph"
    shutil.copytree(built[0], root)
    data = max((root / key for key in stored_objects(root) if "/data/" in key), key=_size)
    data.write_bytes(data.read_bytes()[:-100])
    head = min((root / "__manifest" / "main").glob("*.json"))
    key = data.relative_to(root).as_posix()
    ran = Program()(["--root", str(root), "verify", "--deep"])
    assert (ran.code, key in ran.out + ran.err) == (1, True), ran
    head.write_bytes(head.read_bytes().replace(b'"kind"', b'"kinf"'))
    for words in (["log"], ["stats"], ["branch", "list"], ["export", "-"], ["optimize"]):
        ran = Program()(["--root", str(root), *words])
        assert (ran.code, head.name in ran.err) == (1, True), (words, ran)
        assert "bug" not in ran.err


def _size(path: Path) -> int:
    return path.stat().st_size
