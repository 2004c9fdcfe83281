"""Who uses an old version again, and cleanup that is about to take it, in every order of their
steps: one of the two sees the other. Deterministic: each schedule is a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.settings import Settings
from tests.bench.aging import HOUR, PassingTime
from tests.bench.turns import Player, playing

SCHEMA = "node Person { name: String @key age: I32? }\n"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False, retry_for=99 * HOUR)
USES: dict[str, Callable[[Graph], object]] = {
    "branch": lambda w: w.create_branch("new", "main~3"),
    "tag": lambda w: w.create_tag("new", "main~3"),
    "restore": lambda w: w.restore("main~3"),
}
HOLDER = ("before pin", "pinned", "before put", "after put")
CLEANER = ("before put", "after put", "cleanup announced", "cleanup archived", "cleanup pruned")
FEW = [
    ("before pin", "cleanup announced"),
    ("pinned", "before put"),
    ("pinned", "cleanup announced"),
    ("before put", "before put"),
]
ALL = [(h, c) for h in HOLDER for c in CLEANER]


def play(place: Path, clock: PassingTime, use: str, stops: tuple[str, str], first: str) -> str:
    """One of the two runs to its stop, then the other to its own; the first goes on to the end,
    then the other. What became of the holder."""
    with omnigraph.init(place, schema=SCHEMA, settings=SETTINGS, runtime=clock) as g:
        for number in range(5):
            with g.transaction() as tx:
                tx.append("Person", {"name": f"p{number}"})
        g.optimize()
    clock.wait(place, 2 * HOUR)
    writer, cleaning = (omnigraph.open(place, settings=SETTINGS, runtime=clock) for _ in range(2))
    holder = Player("holder", lambda: USES[use](writer))
    cleaner = Player("cleaner", lambda: cleaning.cleanup(keep=1, older_than=0))
    order = [(holder, stops[0]), (cleaner, stops[1])]
    with playing(holder, cleaner):
        for player, stop in order if first == "holder" else order[::-1]:
            player.run_to(stop)
        for player, _ in order if first == "holder" else order[::-1]:
            player.run_to(None)
    assert cleaner.error is None, cleaner.error
    fresh = omnigraph.open(place, settings=SETTINGS, runtime=clock)
    if holder.error is None:
        ref = "main" if use == "restore" else "new"
        rows = fresh.at(ref).scan("Person").read_all()
        assert sorted(rows["name"].to_pylist()) == ["p0", "p1"]
    else:
        assert isinstance(holder.error, OmnigraphError), holder.error
        assert holder.error.code in ("reclaimed", "conflict"), holder.error
        assert fresh.branches() == ["main"]
        assert fresh.tags() == {}
    for _ in range(2):  # whatever was decided, the next cleanup agrees
        report = fresh.verify(deep=True)
        assert report.ok, report.errors
        clock.wait(place, 2 * HOUR)
        fresh.cleanup(keep=1, older_than=0)
    assert not list((place / "__recovery").glob("*.json"))
    return "held" if holder.error is None else "refused"


@pytest.mark.parametrize("first", ["holder", "cleaner"])
def test_one_of_both_sees_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    clock = PassingTime(monkeypatch)
    outcomes = {
        stops: play(tmp_path / str(number), clock, "branch", stops, first)
        for number, stops in enumerate(FEW)
    }
    # Who looks before the cleaner has said anything holds it; who looks after that is refused.
    expected = "held" if first == "holder" else "refused"
    assert outcomes["pinned", "before put"] == expected


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("first", ["holder", "cleaner"])
def test_one_of_both_sees_the_other_whatever_is_done_with_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, use: str
) -> None:
    clock = PassingTime(monkeypatch)
    for number, stops in enumerate(ALL):
        play(tmp_path / str(number), clock, use, stops, first)
