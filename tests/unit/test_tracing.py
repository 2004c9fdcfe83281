"""Spans and durations, seen by the SDK of OpenTelemetry in processes of their own: whoever collects
sets up what all of a process uses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = "tests.unit.tracing_program"


def run(*arguments: str) -> Any:
    command = [sys.executable, "-m", PROGRAM, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_nobody_listens_so_nothing_is_imported(tmp_path: Path) -> None:
    assert run("silent", str(tmp_path / "g")) == []


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = run("local", str(tmp_path_factory.mktemp("traced") / "g"))
    return found


def spans(told: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [one for one in told["spans"] if one["attributes"]["db.operation.name"] == name]


def test_every_operation_is_a_span_of_its_graph(told: dict[str, Any]) -> None:
    names = {one["attributes"]["db.operation.name"] for one in told["spans"]}
    assert names == {"mutate", "query", "publish", "merge", "create_branch", "restore", "export"}
    for one in told["spans"]:
        assert one["attributes"]["db.system.name"] == "omnigraph"
        assert one["kind"] == "CLIENT"
    assert spans(told, "mutate")[0]["attributes"]["db.namespace"].endswith("/g")


def test_a_span_is_part_of_what_the_program_does(told: dict[str, Any]) -> None:
    (mine,) = (one for one in told["spans"] if one["parent"] is not None)
    assert (mine["attributes"]["db.operation.name"], mine["parent"]) == ("merge", told["mine"])


def test_a_failure_is_told_by_its_code_and_nothing_else(told: dict[str, Any]) -> None:
    (failed,) = (one for one in told["spans"] if one["status"] == "ERROR")
    assert failed["attributes"]["error.type"] == "branch_not_found"
    assert failed["events"] == 0
    assert "secret" not in json.dumps(told)


def test_durations_are_measured_by_operation(told: dict[str, Any]) -> None:
    counts = told["durations"]["db.client.operation.duration"]
    assert counts["query"] == 2
    assert counts["mutate"] == 1
    assert counts["restore"] == 1


def test_a_request_of_a_client_leads_to_the_work_of_the_server(tmp_path: Path) -> None:
    told = run("served", str(tmp_path / "g"))
    asked = {one["name"]: one for one in told["spans"]}
    request = asked["POST /graphs/{graph}/mutate"]
    mutations = {one["name"][:11]: one for one in told["spans"] if one["name"][:7] == "mutate "}
    client = mutations.pop("mutate http")
    (engine,) = mutations.values()
    assert (request["kind"], request["attributes"]["http.response.status_code"]) == ("SERVER", 200)
    assert (request["parent"], engine["parent"]) == (client["id"], request["id"])
