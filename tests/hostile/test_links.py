"""A link is no object of a graph, and neither is a pipe: whatever is replaced by one, nothing that
it leads to is read, written or deleted, and nobody waits for it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.damage import READS, WRITES, build_graph
from tests.hostile.world import fingerprint

WAYS = ("link", "pipe", "dangling", "loop")
CHANGES = ("mutate", "insert", "merge", "restore", "optimize", "cleanup")
LOOKS = {name: use for name, use in (READS | WRITES).items() if name not in CHANGES}
_NUMBERS = re.compile(r"[0-9a-fA-F]{8,}|01[0-9A-Z]{24}|d?\d+")
FEW = 6


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("links") / "graph"
    build_graph(root)
    return root


def kinds(root: Path) -> list[str]:
    """One of each kind of file and folder that a graph has."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        key = path.relative_to(root).as_posix()
        found.setdefault(_NUMBERS.sub("N", key), key)
    return sorted(found.values())


def ask(root: Path, names: list[str]) -> dict[str, Any]:
    """In a process of its own: nothing in this one could end a read that waits for a pipe."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.hostile.asker", str(root), *names],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def replace(path: Path, way: str, outside: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    match way:
        case "link":
            path.symlink_to(outside)
        case "pipe":
            os.mkfifo(path)
        case "dangling":
            path.symlink_to(outside.parent / "nothing-is-there")
        case "loop":
            path.symlink_to(path.name)
        case _:
            pass


def attempts(pristine: Path) -> Iterator[tuple[str, str]]:
    for key in kinds(pristine):
        for way in WAYS:
            yield key, way


def attack(pristine: Path, place: Path, tries: list[tuple[str, str]]) -> None:
    missing: dict[str, dict[str, Any]] = {}
    other = place / "other"
    shutil.copytree(pristine, other)
    before = fingerprint(other)
    for key, way in tries:
        root = place / "graph"
        if key not in missing:
            shutil.copytree(pristine, root)
            replace(root / key, "removed", other)
            missing[key] = ask(root, sorted(LOOKS))
            shutil.rmtree(root)
        shutil.copytree(pristine, root)
        replace(root / key, way, other / key)
        found = ask(root, [*sorted(LOOKS), *CHANGES])
        for name, told in found.items():
            assert "raw" not in told, (key, way, name, told)
            if name in LOOKS and "code" in missing[key][name]:
                assert "code" in told, (key, way, name, "it was followed")
        assert fingerprint(other) == before, (key, way)
        assert sorted(path.name for path in place.iterdir()) == ["graph", "other"], (key, way)
        shutil.rmtree(root)


def test_what_a_link_leads_to_is_not_touched(pristine: Path, tmp_path: Path) -> None:
    tries = list(attempts(pristine))
    random.Random(17).shuffle(tries)
    attack(pristine, tmp_path, tries[:FEW])


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_replaced_by_a_link_is_not_followed(
    pristine: Path, tmp_path: Path, way: str
) -> None:
    attack(pristine, tmp_path, [one for one in attempts(pristine) if one[1] == way])


@pytest.mark.parametrize("part", ["/data/", "/_deletions/", "/_indices/", ".blob", "/_versions/"])
def test_a_file_of_a_table_that_is_a_link_is_refused_by_its_name(
    pristine: Path, tmp_path: Path, part: str
) -> None:
    keys = [key for key in kinds(pristine) if part in key and (pristine / key).is_file()]
    assert keys
    attack(pristine, tmp_path, [(keys[0], "link"), (keys[0], "pipe")])
