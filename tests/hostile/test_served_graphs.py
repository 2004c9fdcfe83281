"""Graphs that somebody else made, opened by a server: every route has an answer or a problem of
ours, which names the object and never a place on the machine."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.client.served import Served, serving
from tests.hostile.damage import build_graph
from tests.hostile.test_fields import (
    NAMED_BY_BYTES,
    SHOWN,
    objects_of,
    places,
    put_content,
    read_object,
    replaced,
)
from tests.hostile.world import World

GETS = (
    *("", "/schema", "/commits?all=true", "/commits/lanes", "/diff?old=main~1&new=main"),
    *("/changes", "/manifest", "/indexes", "/branches", "/tags", "/queries", "/jobs", "/recovery"),
    *("/export", "/schema/summary", "/entities/Person?id=p1", "/entities/Person/blame?id=p1"),
    "/entities/Person/history?id=p1",
)
POSTS: dict[str, dict[str, Any]] = {
    "/query": {"query": "match { $p: Person } return { $p }"},
    "/scan": {"type": "Person"},
    "/mutate": {"query": 'insert Person { name: "zz" }'},
    "/search": {"text": "the"},
    "/merge": {"source": "side", "into": "main", "dry_run": True},
}
FEW = 25
DAMAGE = {"corrupt", "newer_format", "graph_unavailable", "reclaimed"}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pristine") / "graph"
    build_graph(root)
    return root


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "graphs").mkdir()
    with serving(folder) as found:
        yield found


def attack(server: Served, pristine: Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    tries = []
    for key in objects_of(pristine):
        value = read_object((pristine / key).read_bytes(), key)
        tries += [(key, value, path, new) for path in places(value) for new in SHOWN]
    with urllib3.PoolManager(retries=False, timeout=30) as http:
        for number, (key, value, path, new) in enumerate(draw.sample(tries, count)):
            address = f"{server.url}/graphs/h{seed}x{number}"
            root = Path(server.storage_of(address))
            shutil.copytree(pristine, root)
            data, folder = json.dumps(replaced(value, path, new)), key.partition("/")[0]
            if folder in NAMED_BY_BYTES:
                put_content(World(root, root), folder, data)
            else:
                (root / key).write_text(data)
            asked: list[tuple[str, Any]] = [(one, None) for one in draw.sample(GETS, 5)]
            asked += draw.sample(sorted(POSTS.items()), 2)
            for route, body in asked:
                method = "GET" if body is None else "POST"
                answer = http.request(method, address + route, json=body)
                told = (key, path, str(new)[:40], route, answer.status, answer.data[:500])
                assert b"bug" not in answer.data, told
                assert b"Traceback" not in answer.data, told
                assert str(root).encode() not in answer.data, told
                if answer.status >= 500:
                    assert json.loads(answer.data)["code"] in DAMAGE, told
            shutil.rmtree(root)


def test_a_server_answers_for_hostile_graphs(server: Served, pristine: Path) -> None:
    attack(server, pristine, FEW, 17)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_server_answers_for_many_hostile_graphs(
    server: Served, pristine: Path, seed: int
) -> None:
    attack(server, pristine, 150, seed)
