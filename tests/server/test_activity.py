"""What a server does now, as it tells its administrators, and as `omnigraph top` shows it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.policy.credentials import BearerCredentials
from omnigraph.policy.roles import Roles
from omnigraph.policy.tokens import Tokens, create_token
from omnigraph.runtime import SYSTEM
from omnigraph.server.graphs import Graphs
from omnigraph.server.service import Service
from tests.cli.world import Program
from tests.server.serving import Site, serving
from tests.server.test_running import running


@pytest.fixture
def site(people: Path) -> Iterator[Site]:
    with serving(Service(Graphs({"people": str(people)}))) as found:
        yield found


def top(address: str) -> dict[str, object]:
    program = Program(clock=SYSTEM, environment={"OMNIGRAPH_ROOT": address})
    ran = program(["top", "--json"])
    assert ran.code == 0, ran.err
    found: dict[str, object] = json.loads(ran.out)
    return found


def test_a_request_is_told_while_it_is_under_way(site: Site) -> None:
    assert site.get("/activity").json["running"] == []
    with ThreadPoolExecutor(1) as pool:
        head = site.get("/graphs/people/changes").json["cursor"]
        waiting = pool.submit(site.get, f"/graphs/people/changes?since={head}&wait=8")
        deadline = time.monotonic() + 7
        while not (told := site.get("/activity").json)["running"]:
            assert time.monotonic() < deadline
        (one,) = told["running"]
        assert (one["route"], one["graph"]) == ("/graphs/{graph}/changes", "people")
        assert 0 <= one["seconds"] < 8
        shown = top(f"{site.url}/graphs/people")["server"]
        assert isinstance(shown, dict)
        assert [each["route"] for each in shown["running"]] == ["/graphs/{graph}/changes"]
        assert waiting.result().status == 200
    after = site.get("/activity").json
    assert after["running"] == []
    assert after["answered"] > told["answered"]
    assert [one["name"] for one in after["pools"]] == ["read", "write", "job"]


def test_only_administrators_are_told(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "tokens.json")
    texts = {
        role: create_token(
            path, role, roles=(role,), groups=(), graphs=None, lasts=None, runtime=SYSTEM
        ).text
        for role in ("reader", "admin")
    }
    service = Service(
        Graphs({"people": str(people)}),
        credentials=BearerCredentials(Tokens.read(path), None, anonymous=None),
        guarded=True,
        policy=Roles(),
    )
    with serving(service) as site:
        assert site.get("/activity").code == "unauthenticated"
        denied = site.get("/activity", authorization=f"Bearer {texts['reader']}")
        assert denied.code == "denied"
        assert site.get("/activity", authorization=f"Bearer {texts['admin']}").status == 200
        address = f"{site.url}/graphs/people"
        monkeypatch.setenv("OMNIGRAPH_TOKEN", texts["reader"])
        told = top(address)
        assert told["server"] is None
        assert told["branches"]


def test_all_workers_are_asked(people: Path, tmp_path: Path) -> None:
    arguments = [f"people={people}", "--workers", "2", "--bind", "127.0.0.1:0"]
    with running(arguments, tmp_path) as server:
        address = f"{server.wait().url}/graphs/people"
        for _ in range(60):  # the machine chooses which of them answers, and one may begin late
            shown = top(address)["server"]
            assert isinstance(shown, dict)
            assert shown["workers"] == 2
            if shown["seen"] == 2:
                break
            time.sleep(1)
        else:
            pytest.fail("one worker was never seen")
        assert {one["process"] for one in shown["pools"]} > {shown["pools"][0]["process"]}
