"""Random histories over several branches, against plain states and networkx.

What is held: the merge bases are those of the graph of commits; a merge is what the naive model
says, the same from either side; a diff leads from one state to the other.
"""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.engine.history.ancestry import find_merge_bases
from omnigraph.errors import MergeFailed
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.model.history_oracle import Past
from tests.model.merge_oracle import State, Told, equal

SCHEMA = """
node Person { name: String @key age: I32? city: String? }
edge Likes: Person -> Person { @key(src, dst) much: I32? }
"""
EDGES = {"Likes": ("Person", "Person")}
BRANCHES = ("main", "x", "y")
PEOPLE = ("ann", "bob", "cy")
COUNTER = itertools.count()
Step = tuple[Any, ...]

branches = st.sampled_from(BRANCHES)
people = st.sampled_from(PEOPLE)
values = st.sampled_from((0, 1, 2, None))
changes: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("age"), branches, people, values),
    st.tuples(st.just("city"), branches, people, st.sampled_from(("oslo", "rome"))),
    st.tuples(st.just("leave"), branches, people),
    st.tuples(st.just("like"), branches, people, people, values),
    st.tuples(st.just("restore"), branches, st.integers(1, 3)),
    st.tuples(st.just("again"), st.sampled_from(BRANCHES[1:]), branches),
    st.tuples(st.just("compact"), branches),
)
strategies = st.sampled_from((None, "ours", "theirs"))
joins: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("merge"), branches, branches, strategies),
    st.tuples(st.just("cross"), branches, branches, strategies, strategies),
)
rounds = st.tuples(st.lists(changes, min_size=1, max_size=4), joins)


def histories(size: int) -> st.SearchStrategy[list[Step]]:
    """Some changes, a merge or two crossing ones, and so on."""
    return st.lists(rounds, min_size=3, max_size=size).map(
        lambda parts: [step for changed, join in parts for step in (*changed, join)]
    )


CRISS_CROSS: list[Step] = [
    ("age", "x", "ann", 1),
    ("age", "main", "bob", 1),
    ("cross", "main", "x", None, None),
    ("age", "x", "ann", 0),
    ("age", "main", "cy", 2),
    ("merge", "x", "main", None),
]
RESOLVED_IN_TWO_WAYS: list[Step] = [
    ("age", "x", "ann", 1),
    ("leave", "x", "bob"),
    ("age", "main", "ann", 2),
    ("age", "main", "bob", 2),
    ("cross", "main", "x", "ours", "ours"),
    ("merge", "x", "main", None),
    ("merge", "x", "main", "theirs"),
]
LEFT_OR_CHANGED: list[Step] = [
    ("age", "x", "cy", 1),
    ("leave", "main", "cy"),
    ("cross", "main", "x", "ours", "ours"),
    ("merge", "main", "x", None),
]


class World:
    """A graph and what it should hold, side by side."""

    def __init__(self) -> None:
        root = f"memory://histories-{next(COUNTER)}"
        # Maintenance is a step of the history here, at times that the history chooses.
        quick = Settings(durability="relaxed", queue=False, folding="off")
        self.g = omnigraph.init(root, schema=SCHEMA, settings=quick)
        self.past = Past(EDGES)
        self.spare = itertools.count()
        self.unseen: dict[str, str] = {}
        self.past.add(self.head("main"), (), {})
        with self.g.transaction() as tx:
            tx.append("Person", [{"name": name, "age": 0} for name in PEOPLE])
        self.now("main", contents(self.g, "main"))
        for branch in BRANCHES[1:]:
            self.g.create_branch(branch)

    def head(self, branch: str) -> str:
        return self.g.at(branch).commit.id

    def seen(self, commit: str) -> str:
        """The commit without the maintenance that followed, which nobody can see, and behind a
        fast-forward, which shows the same."""
        while commit in self.unseen:
            commit = self.unseen[commit]
        return commit

    def state(self, branch: str) -> State:
        return dict(self.past.states[self.head(branch)])

    def now(self, branch: str, state: State) -> None:
        """The branch made a commit, or none if nothing changed, and holds this."""
        commit = self.g.at(branch).commit
        if commit.id not in self.past.states:
            self.past.add(commit.id, commit.parents, state)
        held = contents(self.g, branch)
        assert equal(held, state)
        assert equal(held, self.past.states[commit.id])

    def apply(self, step: Step) -> None:
        match step:
            case ["age" | "city" as name, branch, person, value]:
                self._put(branch, person, name, value)
            case ["leave", branch, person]:
                self._leave(branch, person)
            case ["like", branch, one, other, much]:
                self._like(branch, one, other, much)
            case ["merge", source, into, prefer] if source != into:
                self._merge(source, into, prefer)
            case ["cross", one, other, prefer, and_other] if one != other:
                self._cross(one, other, prefer, and_other)
            case ["restore", branch, back]:
                self._restore(branch, back)
            case ["again", branch, source] if branch != source:
                self.g.delete_branch(branch)
                self.g.create_branch(branch, ref=source)
                self.now(branch, self.state(source))
            case ["compact", branch]:
                before = self.state(branch)
                old, done = self.head(branch), self.g.branch(branch).optimize().commit
                if done is not None:
                    self.unseen[done.id] = old
                self.now(branch, before)

    def _put(self, branch: str, person: str, name: str, value: Any) -> None:
        state = self.state(branch)
        new = {"id": person, "name": person, "age": None, "city": None}
        state["Person", person] = {**state.get(("Person", person), new), name: value}
        with self.g.branch(branch).transaction() as tx:
            tx.upsert("Person", {"name": person, name: value})
        self.now(branch, state)

    def _leave(self, branch: str, person: str) -> None:
        state = {
            key: row
            for key, row in self.state(branch).items()
            if key != ("Person", person) and person not in (row.get("src"), row.get("dst"))
        }
        with self.g.branch(branch).transaction() as tx:
            tx.delete("Person", where=pc.field("id") == person)
        self.now(branch, state)

    def _like(self, branch: str, one: str, other: str, much: Any) -> None:
        state = self.state(branch)
        if ("Person", one) not in state or ("Person", other) not in state:
            return
        identity = f'["{one}","{other}"]'
        state["Likes", identity] = {"id": identity, "src": one, "dst": other, "much": much}
        with self.g.branch(branch).transaction() as tx:
            tx.upsert("Likes", {"from": one, "to": other, "much": much})
        self.now(branch, state)

    def _restore(self, branch: str, back: int) -> None:
        target = list(self.g.at(branch).log(first_parent=True, limit=back + 1))[-1].id
        self.g.branch(branch).restore(target)
        self.now(branch, self.past.states[target])

    def _cross(self, one: str, other: str, prefer: str | None, and_other: str | None) -> None:
        """Each takes what the other was, so that the next merge has two bases."""
        was_one, was_other = (f"{branch} at {next(self.spare)}" for branch in (one, other))
        self.g.create_branch(was_one, ref=one)
        self.g.create_branch(was_other, ref=other)
        self._merge(was_other, one, prefer)
        self._merge(was_one, other, and_other)

    def _merge(self, source: str, into: str, prefer: str | None) -> None:
        ours, theirs = self.head(into), self.head(source)
        bases = self.past.bases({ours}, theirs)
        assert [self.seen(base) for base in bases] == self._bases(into, source)
        event(f"{len(bases)} bases")
        up_to_date = self.past.has(ours, self.seen(theirs))
        if up_to_date or self.past.has(theirs, self.seen(ours)):
            outcome = "already_up_to_date" if up_to_date else "fast_forward"
            assert self.g.branch(into).merge(source).outcome == outcome
            if up_to_date:
                assert self.head(into) == ours
            else:
                assert self.g.at(into).commit.parents == (ours, theirs)
                self.unseen[self.head(into)] = theirs
            self.now(into, self.past.states[ours if up_to_date else theirs])
            return
        was, mirror = f"was {next(self.spare)}", f"mirror {next(self.spare)}"
        self.g.create_branch(was, ref=into)
        self.g.create_branch(mirror, ref=source)
        mirrored = {"ours": "theirs", "theirs": "ours"}.get(prefer or "")
        expected = self.past.merge(ours, theirs, prefer)
        preview = told(self.g.branch(into).merge(source, strategy=prefer, dry_run=True).conflicts)
        assert preview == normal(expected.conflicts)
        if expected.conflicts:
            event("conflict")
            with pytest.raises(MergeFailed) as failure:
                self.g.branch(into).merge(source, strategy=prefer)
            assert told(failure.value.conflicts) == preview
            assert self.head(into) == ours
            with pytest.raises(MergeFailed):
                self.g.branch(mirror).merge(was, strategy=mirrored)
            return
        event("merged")
        assert self.g.branch(into).merge(source, strategy=prefer).outcome == "merged"
        assert self.g.at(into).commit.parents == (ours, theirs)
        self.now(into, expected.state)
        assert self.g.branch(mirror).merge(was, strategy=mirrored).outcome == "merged"
        assert equal(contents(self.g, mirror), expected.state)

    def _bases(self, into: str, source: str) -> list[str]:
        session, ledger = self.g._session, Ledger()
        ours, theirs = session.live_head(into, ledger), session.live_head(source, ledger)
        found = find_merge_bases(session, [ours], theirs, ledger)
        return [self.seen(version.commit.id) for version in found]


def contents(g: Graph, ref: str) -> State:
    snapshot = g.at(ref)
    return {
        (kind, row["id"]): row
        for kind in ("Person", "Likes")
        for row in snapshot.scan(kind).read_all().to_pylist()
    }


def told(conflicts: Any) -> frozenset[Told]:
    return normal(frozenset((str(c.kind), c.type, c.id, c.property) for c in conflicts))


def normal(conflicts: frozenset[Told]) -> frozenset[Told]:
    """Whether an entity was there is one of the things that bases can disagree on."""
    return frozenset(
        ("DivergentUpdate" if told == "DivergentInsert" else told, kind, entity, name)
        for told, kind, entity, name in conflicts
    )


def check_history(history: list[Step]) -> None:
    with _lived(history).g as g:
        for old, new in itertools.permutations(BRANCHES, 2):
            _check_diff(g, old, new)


def _lived(history: list[Step]) -> World:
    world = World()
    for step in history:
        world.apply(step)
    return world


def _check_diff(g: Graph, old: str, new: str) -> None:
    state = contents(g, old)
    for change in g.at(new).diff(old):
        key = (change.type, change.id)
        assert equal(state.get(key), change.before)
        if change.after is None:
            del state[key]
        else:
            state[key] = change.after
        if change.before is not None and change.after is not None:
            names = {n for n in change.after if not equal(change.before[n], change.after[n])}
            assert names == set(change.changed) != set()
    assert equal(state, contents(g, new))


@example(history=CRISS_CROSS)
@example(history=RESOLVED_IN_TWO_WAYS)
@example(history=LEFT_OR_CHANGED)
@given(history=histories(5))
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_random_histories_merge_and_differ_as_the_naive_model_says(history: list[Step]) -> None:
    check_history(history)


@pytest.mark.slow
@given(history=histories(14))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_long_random_histories_merge_and_differ_as_the_naive_model_says(
    history: list[Step],
) -> None:
    check_history(history)
