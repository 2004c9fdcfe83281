"""Formats: what older programs wrote is read for ever; upgrading survives crashes and rivals."""

from __future__ import annotations

import itertools
import json
import tarfile
from contextlib import nullcontext
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, Snapshot
from omnigraph.engine import opening
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep import upgrade
from omnigraph.engine.write import publisher
from omnigraph.errors import NewerFormat, OlderFormat, ProtectedBranch
from omnigraph.model import formats as lifts
from omnigraph.model import version as model
from omnigraph.plan import successor
from omnigraph.runtime import SYSTEM
from omnigraph.settings import Settings
from omnigraph.store import versions as stored
from omnigraph.store.roots import parse_root
from omnigraph.telemetry import Ledger
from tests.bench.aging import at_point
from tests.bench.faults import Call, Crashed, Fault, FaultyStore, Kind
from tests.frozen.aged import BATCH, KEYED, answers_aged, bring, names
from tests.frozen.make import HERE, answers

SETTINGS = Settings(durability="relaxed", folding="off", queue=False)
RELEASED = sorted(path.name.removesuffix(".tar.gz") for path in HERE.glob("format-*.tar.gz"))


def thaw(name: str, place: Path) -> Path:
    with tarfile.open(HERE / f"{name}.tar.gz") as archive:
        archive.extractall(place)
    return place / "graph"


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    return thaw("format-1", tmp_path)


@pytest.fixture
def next_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the next format, which calls an old field by another name."""

    def step(held: dict[str, Any]) -> dict[str, Any]:
        commit = dict(held["commit"])
        commit["message"] = f"lifted {commit.get('message') or ''}".strip()
        return held | {"commit": commit}

    _become_next(monkeypatch, step)


def _become_next(patch: pytest.MonkeyPatch, step: lifts.Lift) -> None:
    number = model.FORMAT + 1
    patch.setattr(lifts, "LIFTS", {**lifts.LIFTS, model.FORMAT: step})
    for module in (model, stored, publisher, opening, successor):
        patch.setattr(module, "FORMAT", number)


@pytest.fixture(params=["this program", "the next one"])
def program(request: pytest.FixtureRequest) -> None:
    """Both upgrade a graph of the first format."""
    if request.param == "the next one":
        request.getfixturevalue("next_format")


def test_every_released_format_has_a_frozen_graph() -> None:
    """The newest one is frozen when it is released, and then cannot change any more."""
    numbers = range(model.OLDEST_FORMAT, model.FORMAT)
    names = [f"format-{number}{kind}" for number in numbers for kind in ("", "-aged")]
    assert sorted(names) == RELEASED


@pytest.mark.parametrize("name", [name for name in RELEASED if name.endswith("-aged")])
def test_a_frozen_graph_that_grew_old_answers_as_it_did_and_goes_on(
    name: str, tmp_path: Path
) -> None:
    """With all that a graph collects: see `tests/frozen/aged.py`."""
    root = thaw(name, tmp_path)
    assert len(list((root / "__history" / "main").iterdir())) > 1
    assert any((root / "__digests").rglob("*.*"))
    expected = json.loads((HERE / f"{name}.json").read_text())
    with omnigraph.open(root, mode="r", settings=SETTINGS) as g:
        assert answers_aged(g) == expected
        assert g.verify(deep=True).ok
    with omnigraph.open(root, settings=SETTINGS) as g:
        (died,) = g.recovery.list()
        assert g.mutate(KEYED, idempotency_key="once").repeated
        assert names(g, "main").count("keyed") == 1
        (mark,) = expected["streams"].values()
        assert bring(g, BATCH) == mark[2]
        g.recovery.resume(died.id)
        assert "late" in g.snapshot().scan("Note").read_all()["text"].to_pylist()
        with pytest.raises(ProtectedBranch):
            g.branch("locked").mutate(KEYED)
        g.cleanup(keep=1, older_than=0)
        assert [one.id for one in g.log(all=True)][-len(expected["log"]) :] == [
            one[0] for one in expected["log"]
        ]
        assert names(g, "early") == expected["names"]["early"]
        assert g.verify(deep=True).ok
    omnigraph.copy(root, tmp_path / "copy", settings=SETTINGS)
    with omnigraph.open(tmp_path / "copy", mode="r", settings=SETTINGS) as g:
        assert names(g, "early") == expected["names"]["early"]
        assert g.verify(deep=True).ok


def test_versions_in_the_history_of_an_older_graph_are_lifted(
    tmp_path: Path, next_format: None
) -> None:
    root = thaw("format-1-aged", tmp_path)
    with omnigraph.open(root, settings=SETTINGS) as g:
        assert g.format().current
        told = [one for one in g.log() if one.kind != "upgrade"]
        assert all(str(one.message).startswith("lifted") for one in told)
        assert names(g, "early") == [f"p{number}" for number in range(6)]
        assert g.verify(deep=True).ok


@pytest.mark.parametrize("name", [name for name in RELEASED if not name.endswith("-aged")])
def test_a_frozen_graph_answers_as_it_did_and_can_be_written(name: str, tmp_path: Path) -> None:
    root = thaw(name, tmp_path)
    expected = json.loads((HERE / f"{name}.json").read_text())
    with omnigraph.open(root, mode="r", settings=SETTINGS) as g:
        assert answers(g) == expected
        assert g.verify(deep=True).ok
    with omnigraph.open(root, settings=SETTINGS) as g:
        assert g.format().current
        g.mutate('insert Person { name: "new" }')
        g.optimize()
        assert g.verify(deep=True).ok


def test_an_older_graph_is_read_without_being_written(frozen: Path, next_format: None) -> None:
    before = {path: path.stat().st_mtime_ns for path in frozen.rglob("*") if path.is_file()}
    with omnigraph.open(frozen, mode="r", settings=SETTINGS) as g:
        assert str(next(g.log()).message).startswith("lifted")
        report = g.format()
        assert (report.stamp, report.program, report.current) == (1, model.FORMAT, False)
        assert set(report.branches) == {"main", "side", "first"}
    assert {p: p.stat().st_mtime_ns for p in frozen.rglob("*") if p.is_file()} == before


def test_opening_for_writing_upgrades_every_branch_and_then_the_stamp(
    frozen: Path, program: None
) -> None:
    with omnigraph.open(frozen, settings=SETTINGS) as g:
        assert g.format().current
        assert [c.kind for c in g.log(limit=1)] == ["upgrade"]
        assert len(g.at("first").scan("Person").read_all()) == 41
        g.mutate('insert Person { name: "new" }')
        version = g.snapshot().version
        assert g.verify(deep=True).ok
    with omnigraph.open(frozen, settings=SETTINGS) as g:  # a second time does nothing
        assert g.snapshot().version == version


@pytest.mark.parametrize("point", ["before put", "after put", "branch upgraded"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_an_upgrade_that_is_killed_goes_on_when_the_graph_is_opened_again(
    frozen: Path, program: None, point: str, nth: int
) -> None:
    with pytest.raises(ZeroDivisionError), at_point(point, lambda: 1 / 0, nth=nth):
        omnigraph.open(frozen, settings=SETTINGS)
    assert json.loads((frozen / "_graph.json").read_text())["format"] == 1  # it comes last
    with omnigraph.open(frozen, settings=SETTINGS) as g:
        assert g.format().current
        assert sum(c.kind == "upgrade" for c in g.log()) == 1
        assert g.verify(deep=True).ok


def upgraded_until(root: Path, fault: Fault | None) -> list[Call]:
    """An upgrade that dies there: the requests that it came to."""
    place = parse_root(root)
    store = FaultyStore(place.objects(SETTINGS), [] if fault is None else [fault])
    session = Session(place, store, SETTINGS, SYSTEM)
    with nullcontext() if fault is None else pytest.raises(Crashed):
        upgrade.upgrade(session, Ledger())
    return store.calls


@pytest.mark.parametrize("name", ["format-1", "format-1-aged"])
def test_an_upgrade_that_is_killed_at_any_write_goes_on_when_the_graph_is_opened_again(
    name: str, tmp_path: Path, program: None
) -> None:
    """Before it and after it; a kill at a read is one before the next write."""
    frozen = thaw(name, tmp_path / "whole")
    with omnigraph.open(frozen, mode="r", settings=SETTINGS) as g:
        before = {ref: read_all(g, ref) for ref in (*g.branches(), *g.tags())}
    calls = upgraded_until(copytree(frozen, tmp_path / "counted"), None)
    writes = [n for n, call in enumerate(calls, 1) if call.method in ("put", "put_if_absent")]
    assert len(writes) > len(before)
    kinds: tuple[Kind, ...] = ("crash_before", "crash_after")
    for number, kind in itertools.product(writes, kinds):
        root = copytree(frozen, tmp_path / f"{kind}-{number}")
        upgraded_until(root, Fault(kind, nth=number))
        with omnigraph.open(root, settings=SETTINGS) as g:
            assert g.format().current
            assert {ref: read_all(g, ref) for ref in before} == before
            for branch in g.branches():
                made = [
                    one for one in g.branch(branch).log(first_parent=True) if one.kind == "upgrade"
                ]
                assert len(made) == 1, (branch, number, kind)
            assert g.verify(deep=number == writes[-1]).ok
        rmtree(root)


def read_all(g: Graph, ref: str) -> dict[str, list[str]]:
    snapshot = g.at(ref)
    return {name: sorted(map(repr, rows_of(snapshot, name))) for name in snapshot.types()}


def rows_of(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = snapshot.scan(name).read_all().to_pylist()
    return rows


def test_two_programs_that_upgrade_at_once_upgrade_once(frozen: Path, program: None) -> None:
    def rival() -> None:
        omnigraph.open(frozen, settings=SETTINGS).close()

    with at_point("before put", rival) as reached:
        g = omnigraph.open(frozen, settings=SETTINGS)
    assert reached
    with g:
        assert g.format().current
        assert sum(c.kind == "upgrade" for c in g.log()) == 1


def test_a_program_that_was_open_meanwhile_does_not_write_any_more(
    frozen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with omnigraph.open(frozen, settings=SETTINGS) as old:
        old.snapshot()
        with monkeypatch.context() as patch:
            _become_next(patch, lambda held: held)
            omnigraph.open(frozen, settings=SETTINGS).close()
        with pytest.raises(NewerFormat):
            old.mutate('insert Person { name: "new" }')
        with pytest.raises(NewerFormat):
            omnigraph.open(frozen)


def test_a_format_below_the_floor_is_refused(frozen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (model, stored):
        monkeypatch.setattr(module, "OLDEST_FORMAT", 2)
    for mode in ("r", "rw"):
        with pytest.raises(OlderFormat, match="reads 2 to"):
            omnigraph.open(frozen, mode=mode)


def test_checking_tells_what_an_upgrade_would_do(frozen: Path, next_format: None) -> None:
    with omnigraph.open(frozen, mode="r", settings=SETTINGS) as g:
        told = upgrade.check_format(g._session, Ledger()).to_dict()
    assert told == {
        "current": False,
        "stamp": 1,
        "program": model.FORMAT,
        "oldest": 1,
        "branches": ["first", "main", "side"],
    }
