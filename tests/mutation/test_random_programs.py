"""Random programs of mutations against a naive model, with other commits in between."""

from __future__ import annotations

import itertools
import shutil
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.engine.mutation.result import MutationResult
from omnigraph.errors import InvalidData
from tests.mutation.naive import (
    PARAMETERS,
    PROPERTIES,
    SCHEMA,
    Program,
    RefusedError,
    State,
    apply,
    program_text,
    shown,
)
from tests.mutation.programs import START, programs
from tests.mutation.world import at

RELAXED = omnigraph.Settings(durability="relaxed", queue=False)
WHEN = ("staged", "tables committed", "before put")


@contextmanager
def new_graph() -> Iterator[tuple[Graph, Graph, State]]:
    """Two handles on one graph, and the model of it."""
    root = f"memory://{uuid.uuid4().hex}"
    g = omnigraph.init(root, schema=SCHEMA, settings=RELAXED)
    try:
        run(g, START)
        yield g, omnigraph.open(root, settings=RELAXED), apply(START, State())[0]
    finally:
        shutil.rmtree(g.root, ignore_errors=True)


def run(g: Graph, program: Program) -> MutationResult:
    return g.mutate(program_text(program), params=PARAMETERS)


def outcome(g: Graph, program: Program) -> MutationResult | InvalidData:
    try:
        return run(g, program)
    except InvalidData as error:
        return error


def seen(g: Graph) -> dict[str, Counter[tuple[str, ...]]]:
    snapshot = g.snapshot()
    return {
        name: Counter(shown(row) for row in snapshot.scan(name).read_all().to_pylist())
        for name in PROPERTIES
    }


def counted(result: MutationResult) -> Counter[tuple[str, str]]:
    found = {
        (name, effect): getattr(counts, effect)
        for name, counts in result.counts.items()
        for effect in ("inserted", "updated", "deleted")
    }
    return +Counter(found)


def _foretold(program: Program, state: State) -> tuple[State, Counter[tuple[str, str]]] | None:
    try:
        return apply(program, state)
    except RefusedError:
        return None


def check(found: MutationResult | InvalidData, program: Program, state: State) -> State:
    """What came of a program, compared with the model; the state afterwards."""
    wanted = _foretold(program, state)
    if wanted is None:
        assert isinstance(found, InvalidData), program_text(program)
        return state
    expected, effects = wanted
    assert isinstance(found, MutationResult), (found, program_text(program))
    assert counted(found) == effects
    assert found.nodes == sum(n for (name, _), n in effects.items() if name in ("Person", "Note"))
    assert found.edges == sum(n for (name, _), n in effects.items() if name in ("Knows", "Likes"))
    if found.commit_id is None:
        assert expected.seen() == state.seen()
    return expected


QUIET = settings(suppress_health_check=list(HealthCheck))


def _check_programs(sequence: list[Program], reopened: bool) -> None:
    with new_graph() as (g, h, state):
        for number, program in enumerate(sequence):
            handle = h if reopened and number % 2 else g
            state = check(outcome(handle, program), program, state)
            assert seen(handle) == state.seen()


def _check_race(mine: Program, other: Program, when: str) -> None:
    """The other program commits whole while mine waits at a point of the protocol."""
    with new_graph() as (g, h, state):
        h.snapshot()
        theirs: list[Any] = []
        with at(when, lambda: theirs.append(outcome(h, other))):
            found = outcome(g, mine)
        if not theirs:  # mine was refused, or had nothing to publish
            check(found, mine, state)
        elif isinstance(found, MutationResult) and found.commit_id is None:
            middle = check(theirs[0], other, state)
            try:
                check(found, mine, state)  # nothing to do before the other came
            except AssertionError:
                check(found, mine, middle)  # or nothing left to do after it
            state = middle
        else:
            middle = check(theirs[0], other, state)
            state = check(found, mine, middle)
        assert seen(g) == state.seen()
        assert seen(h) == state.seen()


@QUIET
@given(sequence=st.lists(programs, min_size=1, max_size=3), reopened=st.booleans())
def test_programs_do_what_a_naive_model_does(sequence: list[Program], reopened: bool) -> None:
    _check_programs(sequence, reopened)


@QUIET
@given(mine=programs, other=programs, when=st.sampled_from(WHEN))
def test_a_program_that_lost_a_race_does_what_it_would_have_done_later(
    mine: Program, other: Program, when: str
) -> None:
    _check_race(mine, other, when)


@pytest.mark.slow
@settings(max_examples=1500, suppress_health_check=list(HealthCheck))
@given(mine=programs, other=programs, when=st.sampled_from(WHEN))
def test_many_programs_that_lost_a_race(mine: Program, other: Program, when: str) -> None:
    _check_race(mine, other, when)


@pytest.mark.slow
@settings(max_examples=1500, suppress_health_check=list(HealthCheck))
@given(sequence=st.lists(programs, min_size=1, max_size=6), reopened=st.booleans())
def test_many_programs_one_after_the_other(sequence: list[Program], reopened: bool) -> None:
    _check_programs(sequence, reopened)


def test_the_programs_are_not_all_refused() -> None:
    """A model proves little when most programs do nothing."""
    done = Counter[str]()
    state = apply(START, State())[0]

    @settings(max_examples=100, database=None, derandomize=True)
    @given(program=programs)
    def look(program: Program) -> None:
        try:
            after, _ = apply(program, state)
        except RefusedError:
            done["refused"] += 1
        else:
            done["changed" if after.seen() != state.seen() else "nothing"] += 1

    look()
    total = sum(itertools.chain(done.values()))
    assert done["changed"] > total / 3, done
    assert done["refused"] > total / 50, done
