"""The errors of another process: what a problem says is what was raised."""

from __future__ import annotations

import json

import pytest

from omnigraph import errors
from omnigraph.errors import (
    Conflict,
    InvalidData,
    InvalidParameters,
    InvalidQuery,
    MergeFailed,
    OmnigraphError,
    OutcomeUnknown,
    PreconditionFailed,
)
from omnigraph.lang.diagnostics import Diagnostic, Span
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.violation import Violation
from omnigraph.plan.rebase import ExpectedVersionMismatch
from omnigraph.wire.problems import problem_of
from omnigraph.wire.remote_errors import error_of


def sent(error: OmnigraphError) -> OmnigraphError:
    return error_of(json.loads(json.dumps(problem_of(error, "r1"))))


def kinds(kind: type[OmnigraphError] = OmnigraphError) -> list[type[OmnigraphError]]:
    return [kind, *(one for below in kind.__subclasses__() for one in kinds(below))]


OURS = [kind for kind in kinds() if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_it_was_told(kind: type[OmnigraphError]) -> None:
    error = kind.__new__(kind)
    OmnigraphError.__init__(error, "what happened: ünï “x”", help="what to do next", expected="a")
    for name in ("problems", "diagnostics", "violations", "steps", "conflicts", "queries"):
        setattr(error, name, ())
    error.__dict__.update(more=0, mismatch=None, commit="01", limit="rows", differs="graph")
    back = sent(error)
    assert (type(back), back.message, back.hint) == (kind, error.message, error.hint)
    assert (back.details["expected"], back.applied) == ("a", kind.applied)


def test_what_an_error_holds_comes_with_it() -> None:
    violation = Violation(type="P", rule="key", message="m", row=3)
    data = sent(InvalidData("x", violations=[violation], more=2))
    assert isinstance(data, InvalidData)
    assert (data.violations, data.more) == ((violation,), 2)
    found = Diagnostic(code="T1", message="no such type", span=Span(1, 2))
    query = sent(InvalidQuery("x", diagnostics=[found]))
    assert isinstance(query, InvalidQuery)
    assert query.diagnostics == (found,)
    parameters = sent(InvalidParameters("x", problems=[("n", "is no number")]))
    assert isinstance(parameters, InvalidParameters)
    assert parameters.problems == (("n", "is no number"),)
    mismatch = ExpectedVersionMismatch(table_key="node:P", expected=1, actual=2)
    conflict = sent(Conflict("x", mismatch=mismatch))
    assert isinstance(conflict, Conflict)
    assert conflict.mismatch == mismatch
    unknown = sent(OutcomeUnknown("x", commit="01ABC"))
    assert isinstance(unknown, OutcomeUnknown)
    assert unknown.commit == "01ABC"
    moved = sent(PreconditionFailed("x", expected="a", actual="b"))
    assert moved.details == {"expected": "a", "actual": "b"}


def test_the_conflicts_of_a_merge_come_with_it() -> None:
    one = MergeConflict(kind=next(iter(ConflictKind)), type="P", id="a", message="m")
    back = sent(MergeFailed("x", conflicts=[one]))
    assert isinstance(back, MergeFailed)
    assert back.conflicts == (one,)


def test_a_code_that_is_not_known_stays_an_error() -> None:
    back = error_of({"code": "from_the_future", "error": "what happened", "help": "h"})
    assert (type(back), back.message, back.hint) == (OmnigraphError, "what happened", "h")
