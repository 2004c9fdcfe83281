"""Real processes write down what they read and wrote; the log, replayed in order, agrees."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from tests.bench.processes import results_of, run_together
from tests.bench.s3 import S3Server
from tests.processes.recording import ACCOUNTS, SCHEMA, Record

LIVE = "tests.processes.recording:live"


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "graph")
    server: S3Server = request.getfixturevalue("s3_environment")
    return server.url(f"t/{uuid.uuid4().hex}")


class Replay:
    """The state as it must have been between two commits."""

    def __init__(self) -> None:
        self.accounts = dict.fromkeys(ACCOUNTS, 100)
        self.entries: dict[str, int] = {}

    def check(self, record: Record) -> None:
        """What the transaction saw is what was there just before its commit."""
        if record["reads"] is not None:
            assert record["reads"] == self.accounts, record
        for _, limit, told in record["told"]:
            assert told == sum(value < limit for value in self.accounts.values()), record

    def apply(self, record: Record) -> None:
        for write in record["writes"]:
            match write:
                case ["put", rows]:
                    self.accounts |= rows
                case ["add", name, more]:
                    self.accounts[name] += more
                case ["below", limit, value]:
                    for name, held in self.accounts.items():
                        self.accounts[name] = value if held < limit else held
                case ["entry", mark, total]:
                    assert mark not in self.entries
                    self.entries[mark] = total
                case other:
                    raise AssertionError(other)

    def compare(self, snapshot: Any) -> None:
        accounts = snapshot.scan("Account").read_all().to_pylist()
        assert {row["id"]: row["value"] for row in accounts} == self.accounts
        entries = snapshot.scan("Entry").read_all().to_pylist()
        assert {row["id"]: row["total"] for row in entries} == self.entries


def check_history(place: str, records: list[Record]) -> None:
    landed = {record["commit"]: record for record in records if record.get("commit")}
    unknown = {record["unknown"]: record for record in records if record.get("unknown")}
    assert len(landed) == sum(bool(record.get("commit")) for record in records)
    state, told = Replay(), 0
    with omnigraph.open(place, mode="r") as g:
        commits = list(g.log(first_parent=True))[::-1]
        assert len({commit.id for commit in commits}) == len(commits)
        for commit in commits:
            if commit.kind in ("init", "optimize") or commit.message == "begin":
                continue
            record = landed.pop(commit.id, None) or unknown.pop(commit.id)
            state.check(record)
            state.apply(record)
            told += 1
            if told % 5 == 0:
                state.compare(g.at(f"main@{commit.id}"))
        assert not landed  # what was acknowledged and is not in the log
        state.compare(g.snapshot())
        assert g.verify(deep=True).ok
    assert told


@pytest.mark.parametrize(
    ("processes", "count"), [(3, 14), pytest.param(8, 150, marks=pytest.mark.slow)]
)
def test_every_read_is_of_the_state_before_its_commit_and_every_write_is_there_once(
    place: str, processes: int, count: int
) -> None:
    with omnigraph.init(place, schema=SCHEMA) as g, g.transaction(message="begin") as tx:
        tx.append("Account", [{"name": name, "value": 100} for name in ACCOUNTS])
    given = [{"root": place, "seed": seed, "count": count} for seed in range(processes)]
    made = results_of(run_together(LIVE, given))
    check_history(place, [record for records in made for record in records])


def test_a_record_that_does_not_fit_the_log_is_found(tmp_path: Path) -> None:
    """The checker can fail: a read that was not there, a write that nobody acknowledged."""
    place = str(tmp_path / "graph")
    with omnigraph.init(place, schema=SCHEMA) as g:
        with g.transaction(message="begin") as tx:
            tx.append("Account", [{"name": name, "value": 100} for name in ACCOUNTS])
        with g.transaction() as tx:
            tx.upsert("Account", {"name": "a1", "value": 5})
        right: Record = {
            "commit": tx.commit_id,
            "reads": dict.fromkeys(ACCOUNTS, 100),
            "told": [],
            "writes": [["put", {"a1": 5}]],
        }
    check_history(place, [right])
    stale = right | {"reads": dict.fromkeys(ACCOUNTS, 99)}
    wrong = right | {"writes": [["put", {"a1": 6}]]}
    for records in ([stale], [wrong], [right, right | {"commit": "01M7P89X6KAVSKMSZ6H5EBQD7P"}]):
        with pytest.raises(AssertionError):
            check_history(place, records)
    with pytest.raises(KeyError):
        check_history(place, [])
