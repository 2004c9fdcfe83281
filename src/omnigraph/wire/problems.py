"""Owns problems: an error as the JSON object that a program reads (RFC 9457)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from omnigraph.errors import (
    BrokenQueries,
    Conflict,
    InvalidData,
    InvalidParameters,
    InvalidQuery,
    InvalidSchema,
    MergeFailed,
    OmnigraphError,
    OutcomeUnknown,
    RevertFailed,
    UnsupportedChange,
)
from omnigraph.wire.typed import typed
from omnigraph.wire.values import plain

URN = "urn:omnigraph:"
MEDIA_TYPE = "application/problem+json"
_RETRY_AFTER = 1
SAID = frozenset(
    ("type", "title", "status", "code", "error", "help", "retryable", "applied", "request_id")
)
"""What every problem says. The rest is what the error knows."""


def known_facts(error: OmnigraphError) -> dict[str, Any]:
    """What an error knows beside its words."""
    facts: dict[str, Any] = {name: plain(value) for name, value in error.details.items()}
    match error:
        case InvalidParameters():
            facts["problems"] = [{"parameter": n, "problem": p} for n, p in error.problems]
        case InvalidSchema() | InvalidQuery():
            facts["diagnostics"] = [plain(d) for d in error.diagnostics]
        case InvalidData():
            facts["violations"] = [plain(v) for v in error.violations]
            facts["more"] = error.more
        case BrokenQueries():
            facts["queries"] = [plain(query) for query in error.queries]
        case UnsupportedChange():
            facts["steps"] = [plain(step) for step in error.steps]
        case MergeFailed() | RevertFailed():
            facts["conflicts"] = [plain(conflict) for conflict in error.conflicts]
        case Conflict() if error.mismatch is not None:
            facts["manifest_conflict"] = plain(error.mismatch)
        case OutcomeUnknown():
            facts["commit"] = error.commit
    return facts


def problem_of(
    error: OmnigraphError, request_id: str | None = None, *, with_kinds: bool = False
) -> dict[str, Any]:
    """The body of an answer that is an error; `with_kinds` for a client that reads values with
    their kinds."""
    facts = known_facts(error)
    if with_kinds and isinstance(error, MergeFailed | RevertFailed):
        facts["conflicts"] = [typed(asdict(conflict)) for conflict in error.conflicts]
    return {name: value for name, value in facts.items() if name not in SAID} | {
        "type": URN + error.code,
        "title": error.code.replace("_", " ").capitalize(),
        "status": error.http_status,
        "code": error.code,
        "error": error.message,
        "help": error.hint,
        "retryable": error.retryable,
        "applied": error.applied,
        "request_id": request_id,
    }


def retry_after(error: OmnigraphError) -> int | None:
    """Seconds that a client is told to wait; None where it makes no sense to ask again."""
    if error.http_status not in (429, 503) or not error.retryable:
        return None
    return int(error.details.get("retry_after", _RETRY_AFTER))
