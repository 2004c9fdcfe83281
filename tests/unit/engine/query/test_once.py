"""What many queries need at once is read and arranged once, and who waits for it can be stopped."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.cache import Cache, stopped_by
from omnigraph.engine.query.adjacency.arrays import Adjacency
from omnigraph.errors import Cancelled
from omnigraph.store.tables import Table

THREADS = 8
SCHEMA = "node P { name: String @key  age: I32 }\nedge K: P -> P"
TEXT = "match { $a: P  $a k $b  $b k $c  $c.age > 5 } return { $a.name, count($c) as n }"


def together(call: Callable[[], Any]) -> list[Any]:
    found: list[Any] = []
    start = threading.Barrier(THREADS)

    def work() -> None:
        start.wait()
        found.append(call())

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.fixture
def root(tmp_path: Path) -> str:
    count = 30_000
    with omnigraph.init(str(tmp_path / "g"), schema=SCHEMA) as g:
        g.load([{"name": f"p{n}", "age": n % 50} for n in range(count)], type="P")
        g.load([{"from": f"p{n}", "to": f"p{n * 7 % count}"} for n in range(count)], type="K")
    return str(tmp_path / "g")


def test_eight_cold_queries_read_and_arrange_once(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: Counter[str] = Counter()
    read, arrange = Table.read_physical, Adjacency.__init__

    def reading(self: Table, columns: Any, *rest: Any) -> Any:
        counted[",".join(columns)] += 1
        time.sleep(0.05)  # so that all of them are there
        return read(self, columns, *rest)

    def arranging(self: Any, *given: Any, **words: Any) -> None:
        counted["adjacency"] += 1
        time.sleep(0.05)
        arrange(self, *given, **words)

    monkeypatch.setattr(Table, "read_physical", reading)
    monkeypatch.setattr(Adjacency, "__init__", arranging)
    with omnigraph.open(root) as g:
        g.query(TEXT).to_pylist()
    alone, counted = dict(counted), Counter()
    with omnigraph.open(root) as g:
        answers = together(lambda: sorted(g.query(TEXT).to_pylist(), key=str))
    assert all(answer == answers[0] for answer in answers)
    assert alone["adjacency"] == 1
    assert dict(counted) == alone


def test_a_value_is_made_once_and_given_to_all_even_if_it_is_not_kept() -> None:
    cache, made = Cache(limit=0), []

    def make() -> str:
        made.append(1)
        time.sleep(0.2)
        return "value"

    assert together(lambda: cache.once(("k",), lambda: None, make)) == ["value"] * THREADS
    assert len(made) == 1


def test_if_it_fails_the_next_one_makes_it() -> None:
    cache, tries = Cache(limit=0), []

    def make() -> str:
        tries.append(1)
        time.sleep(0.05)
        if len(tries) == 1:
            raise Cancelled("The query was cancelled.", limit="cancelled")
        return "value"

    def ask() -> str:
        try:
            return cache.once(("k",), lambda: None, make)
        except Cancelled:
            return "cancelled"

    answers = Counter(together(ask))
    assert answers == {"cancelled": 1, "value": THREADS - 1}


def test_who_waits_for_another_is_stopped_soon() -> None:
    cache, go, inside = Cache(limit=0), threading.Event(), threading.Event()

    def make() -> str:
        inside.set()
        assert go.wait(30)
        return "value"

    def stop() -> None:
        raise Cancelled("The query was cancelled.", limit="cancelled")

    maker = threading.Thread(target=lambda: cache.once(("k",), lambda: None, make))
    maker.start()
    assert inside.wait(30)
    began = time.monotonic()
    with pytest.raises(Cancelled), stopped_by(stop):
        cache.once(("k",), lambda: None, make)
    assert time.monotonic() - began < 5
    go.set()
    maker.join()
