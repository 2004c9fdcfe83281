"""What a query keeps while it runs is booked: several holders together keep to the limit, and what
was kept is given back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from omnigraph import Graph
from omnigraph.engine.query import ask
from omnigraph.engine.query.guard import Guard
from omnigraph.errors import MemoryLimit
from tests.unit.engine.query.people import graph

DOCS = 3000
NUMBER = 8
PLENTY = 1 << 30
SCHEMA = """
node Doc {
  name: String @key  n: I64?  v: Vector(2)?
  title: String? @index  body: String? @index
}
node Tag { t: I64? }
edge Cites: Doc -> Doc
"""


class WatchedGuard(Guard):
    """Remembers the most that was booked at once in the last query."""

    last: WatchedGuard
    most = 0

    def begin(self) -> None:
        super().begin()
        WatchedGuard.last = self
        self.most = 0

    def hold(self, size: int) -> None:
        super().hold(size)
        self.most = max(self.most, self.held)


@pytest.fixture(scope="module")
def docs() -> Iterator[Graph]:
    with graph(SCHEMA) as g:
        names = [f"d{n}" for n in range(DOCS)]
        with g.transaction() as tx:
            tx.append(
                "Doc",
                [
                    # The first rows are short, so that an estimate by them is too low.
                    {
                        "name": name,
                        "n": n,
                        "v": [n, 1.0],
                        "title": "red" * (n > 300),
                        "body": _body(n),
                    }
                    for n, name in enumerate(names)
                ],
            )
            tx.append("Tag", [{"t": n} for n in range(50)])
            tx.append("Cites", [{"from": n, "to": m} for n, m in pairwise(names)])
        yield g


def _body(n: int) -> str:
    return "" if n < 300 else f"red {n} " + "and a long text " * 20


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[WatchedGuard]:
    monkeypatch.setattr(ask, "Guard", WatchedGuard)
    return WatchedGuard


KEPT = {
    "sort": ("match { $d: Doc } return { $d.name } order { $d.n }", NUMBER * DOCS),
    "groups": ("match { $d: Doc } return { $d.n, count($d) as c }", NUMBER * DOCS),
    "collect": (
        "match { $d: Doc } return { collect($d.body) as a, collect($d.body) as b }",
        2 * 300 * (DOCS - 300),
    ),
    "distinct": ("match { $d: Doc } return distinct { $d.body }", 300 * (DOCS - 300)),
    "product": ("match { $d: Doc $t: Tag } return { $d.n, $t.t }", NUMBER * DOCS),
    "counted rows": (
        "match { $d: Doc $d cites $e } return { $e.n, count($d) as c }",
        NUMBER * (DOCS - 1),
    ),
    "an aggregate over a pattern": (
        "match { $t: Tag } return { $t.t, max($d.body) { $d: Doc } as b }",
        300 * (DOCS - 300),
    ),
    "ranked rows": (
        "match { $d: Doc $d cites $e } return { $e.n } order { nearest($d.v, [1.0, 0.0]) } limit 5",
        2 * NUMBER * (DOCS - 1),
    ),
    "what a search found": (
        'match { $d: Doc search($d.body, "red") } return { count($d) as c }',
        2 * NUMBER * (DOCS - 300),
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_a_query_keeps_is_booked(docs: Graph, watched: type[WatchedGuard], case: str) -> None:
    text, least = KEPT[case]
    assert len(docs.query(text, memory_limit=PLENTY).to_arrow())
    assert least <= watched.last.most < PLENTY


@pytest.mark.parametrize("case", [case for case in KEPT if "search" not in case])
@pytest.mark.parametrize("whole", [True, False])
def test_what_was_kept_is_given_back(
    docs: Graph, watched: type[WatchedGuard], case: str, whole: bool
) -> None:
    """Also when somebody stops reading. What a search found stays until the query ends; the rows
    that it was found for do not."""
    batches = docs.query(KEPT[case][0], memory_limit=PLENTY).batches()
    next(batches)
    if whole:
        list(batches)
    batches.close()  # type: ignore[attr-defined]
    found = 2 * NUMBER * (DOCS - 1) if case == "ranked rows" else 0
    assert watched.last.held <= found


def test_two_scratch_indexes_together_keep_to_the_limit(docs: Graph) -> None:
    """Each of them alone fits."""
    texts = ["and a long text " * 20] * 1000
    limit = 6 * len(texts[0]) * len(texts)
    title = 'match { $d: Doc search($d.title, "text") } return { count($d) as c }'
    body = 'match { $d: Doc search($d.body, "text") } return { count($d) as c }'
    both = (
        'match { $d: Doc search($d.title, "text") search($d.body, "text") } '
        "return { count($d) as c }"
    )
    with graph(SCHEMA) as g, g.transaction() as tx:
        tx.append(
            "Doc",
            [{"name": f"p{n}", "title": text, "body": text} for n, text in enumerate(texts)],
        )
        for text in (title, body):
            assert tx.query(text, memory_limit=limit).to_pylist() == [{"c": 1000}]
        assert tx.query(both).to_pylist() == [{"c": 1000}]
        with pytest.raises(MemoryLimit):
            tx.query(both, memory_limit=limit).to_pylist()


def test_lists_together_keep_to_the_limit(docs: Graph) -> None:
    """Each list alone fits; how long texts are is not seen in the first rows."""
    limit = 4_500_000
    one = "collect($d.body) as a"
    many = ", ".join(f"collect($d.body) as a{n}" for n in range(8))
    assert len(docs.query(f"match {{ $d: Doc }} return {{ {one} }}", memory_limit=limit)) == 1
    with pytest.raises(MemoryLimit):
        docs.query(f"match {{ $d: Doc }} return {{ {many} }}", memory_limit=limit).to_arrow()


# The book


def guarded(limit: int) -> Guard:
    guard = Guard(time.monotonic, timeout=None, memory_limit=limit)
    guard.begin()
    return guard


def test_a_booking_grows_shrinks_and_ends() -> None:
    guard = guarded(100)
    with guard.booking() as one, guard.booking() as other:
        one.resize(60)
        other.add(40)
        assert guard.room == 0
        with pytest.raises(MemoryLimit):
            other.add(1)
        assert other.has_room(40)
        assert not other.has_room(41)
        one.resize(10)
        assert other.has_room(90)
    assert guard.room == 100


def test_a_booking_of_an_earlier_run_gives_nothing_back_to_a_later_one() -> None:
    guard = guarded(100)
    with guard.booking() as old:
        old.resize(80)
        guard.begin()
        guard.hold(30)
    assert guard.room == 70
