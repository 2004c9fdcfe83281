"""The journal of a job: equal input has one name, and the first of two attempts is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import omnigraph
from omnigraph.errors import EngineMissing, StoreFailure
from omnigraph.settings import Settings
from omnigraph.spark import cluster
from omnigraph.spark.cluster import Probed, require_executors
from omnigraph.spark.load.journal import Journal, create, digest
from omnigraph.spark.tasks import explain
from omnigraph.store.objects import Ambiguous
from omnigraph.store.roots import Root


class Answer(msgspec.Struct, frozen=True):
    told: str


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(Root(str(tmp_path), tmp_path), "__jobs/x/journal", Settings())


def test_equal_values_have_one_digest_and_others_another() -> None:
    given = ("a", {"x": 1, "y": (2, None)}, np.arange(5), Path("/tmp/f"))
    assert digest(*given) == digest("a", {"y": (2, None), "x": 1}, np.arange(5), Path("/tmp/f"))
    others = [
        ("b", *given[1:]),
        ("a", {"x": 1, "y": (2, 0)}, *given[2:]),
        (*given[:2], np.arange(6), given[3]),
        (*given[:2], np.arange(5, dtype=np.int32), given[3]),
    ]
    assert len({digest(*one) for one in (given, *others)}) == 5
    with pytest.raises(TypeError):
        digest(object())


def test_of_two_attempts_at_a_task_the_first_is_right_for_both(journal: Journal) -> None:
    assert journal.note("staged-1", [Answer("first")], Answer) == [Answer("first")]
    assert journal.note("staged-1", [Answer("second")], Answer) == [Answer("first")]
    assert journal.recall("staged-1", Answer) is None  # this run began before it was noted
    again = journal.look()
    assert again.recall("staged-1", Answer) == [Answer("first")]
    ran: list[int] = []

    def work() -> Any:
        ran.append(1)
        yield Answer("new")

    assert again.once("staged-1", Answer, work) == [Answer("first")]
    assert again.once("staged-2", Answer, work) == [Answer("new")]
    assert ran == [1]


class Unsure:
    """A store whose answers get lost, with the effect or without."""

    def __init__(self, lands: list[bool]) -> None:
        self.lands = lands
        self.held: dict[str, bytes] = {}

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.lands.pop(0):
            self.held.setdefault(key, data)
        raise Ambiguous(key)

    def get(self, key: str) -> bytes:
        from omnigraph.store.objects import Absent

        if key not in self.held:
            raise Absent(key)
        return self.held[key]


def test_an_answer_that_was_lost_is_looked_up() -> None:
    assert create(Unsure([True]), "k", b"mine")  # type: ignore[arg-type]
    assert create(Unsure([False, True]), "k", b"mine")  # type: ignore[arg-type]
    taken = Unsure([True])
    taken.held["k"] = b"theirs"
    assert not create(taken, "k", b"mine")  # type: ignore[arg-type]
    with pytest.raises(StoreFailure, match="could not be written"):
        create(Unsure([False] * 9), "k", b"mine")  # type: ignore[arg-type]


# What executors lack


class Far:
    """A session on a cluster."""

    conf: Any

    def __init__(self) -> None:
        self.conf = self
        self.settings = {"spark.master": "spark://far:7077"}

    def get(self, name: str, default: str = "") -> str:
        return self.settings.get(name, default)


def test_executors_that_lack_something_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = explain(RuntimeError("…\nModuleNotFoundError: No module named 'omnigraph'"))
    assert isinstance(lacking, EngineMissing)
    shipped: list[int] = []

    def fail(*_: Any) -> Any:
        raise lacking

    def ship(_: Any) -> bool:
        shipped.append(1)
        return True

    monkeypatch.setattr(cluster, "_ship", ship)
    monkeypatch.setattr(cluster, "run_tasks", fail)
    with pytest.raises(EngineMissing, match="executors of spark://far:7077 lack pylance"):
        require_executors(Far())
    assert shipped == [1]
    monkeypatch.setattr(cluster, "run_tasks", lambda *_: [(0, Probed("0.0.9", "14.0.2"))])
    with pytest.raises(EngineMissing, match=r"have omnigraph 0\.0\.9, and this is"):
        require_executors(Far())
    good = [(0, Probed(omnigraph.__version__, "14.0.2"))]
    monkeypatch.setattr(cluster, "run_tasks", lambda *_: good)
    require_executors(Far())


def test_what_went_wrong_in_java_is_told_by_its_cause() -> None:
    text = (
        "An error occurred while calling o3719.getResult.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
        "\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:359)\n"
        "Caused by: org.apache.spark.SparkException: Not enough memory to broadcast the table.\n"
        "\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
    )
    assert "SparkException: Not enough memory to broadcast" in explain(RuntimeError(text)).message
