"""Owns writes to a graph on a server: each is done once, however often its answer is lost.

A write has a key before it is sent for the first time. A connection that is lost, and answers 502,
503 and 504, are followed by the same bytes again, until the patience of the caller ends. Then the
key is looked up, and what is still not known is said to be unknown.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from omnigraph.client.connection import Answered, Body, Lost, Pauses, Query, failure_of
from omnigraph.client.served_graph import TYPED, ServedGraph, json_body
from omnigraph.client.told import commit_of
from omnigraph.client.understanding import WRONG, what_is_wrong
from omnigraph.errors import NotFound, NotRemote, OmnigraphError, OutcomeUnknown
from omnigraph.model.options import CommitOptions, CommitWords, read_options
from omnigraph.model.version import Commit
from omnigraph.tracing import add_context
from omnigraph.wire.conditions import etag_of

_WRITE_SILENCE = 600.0
"""Seconds that a write may take without a byte of an answer."""
_LAST_LOOK = 5.0
_KEY = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass(frozen=True)
class Sent:
    """The answer to a write. It is only `repeated` if an earlier call had done it, and not an
    earlier attempt of this one."""

    told: dict[str, Any]
    repeated: bool
    answer: Answered


def signed(served: ServedGraph, given: CommitWords) -> CommitOptions:
    """The options of a write. Who writes is who the token is for: another actor is refused."""
    options = read_options(given)
    if options.actor is not None and options.actor != (known := served.actor()):
        whose = f"the server takes you for {known!r}" if known else "the server knows no actor here"
        raise NotRemote(
            f"A write cannot be signed by {options.actor!r}: {whose}.",
            help="Leave the actor out; the token says who writes.",
        )
    return options


@dataclass(frozen=True)
class RemoteWrite:
    """One write that is to be sent. `body` is bytes, or a file that is read again from its start
    for each attempt."""

    method: str
    path: str
    branch: str
    body: Body
    content_type: str | None = "application/json"
    query: Query | None = None
    headers: Mapping[str, str] | None = None
    silence: float = _WRITE_SILENCE
    gone_is_done: bool = False
    """A deletion whose answer was lost, and that then finds nothing, has been done."""
    to_server: str | None = None
    """The path of the server itself, where it is not about the graph."""


def send(served: ServedGraph, write: RemoteWrite, options: CommitOptions) -> Sent:
    """Sends it until what became of it is known."""
    key = _sendable(options.idempotency_key) or served.connection.new_key()
    attempt = _attempt(served, write, options, key)
    pauses = Pauses(served.connection, options.patience(served.connection.retry_for))
    uncertain = False
    while True:
        try:
            return _told(attempt(), options)
        except Lost as lost:
            uncertain = uncertain or lost.sent
            if pauses.take(lost):
                continue
            if not uncertain:
                raise failure_of(lost) from None
            found = _look_up(served, write.branch, key)
            if found is not None:
                # It has landed, so the same bytes bring its answer.
                with contextlib.suppress(Lost):
                    return _told(attempt(), options)
            raise _unknown(lost, found, key) from None
        except OmnigraphError as error:
            if uncertain and write.gone_is_done and isinstance(error, NotFound):
                return Sent({}, False, Answered(200, {}, b"{}"))
            if uncertain and not error.retryable:
                _require_absent(served, write.branch, key, error)
            raise


def _attempt(
    served: ServedGraph, write: RemoteWrite, options: CommitOptions, key: str
) -> Callable[[], Answered]:
    """Sends the same bytes each time."""
    headers = {"Accept": TYPED, "Idempotency-Key": key, **served.holding}
    headers |= dict(write.headers or {})
    if write.content_type is not None:
        headers["Content-Type"] = write.content_type
    if options.if_commit is not None:
        headers["If-Match"] = etag_of(options.if_commit)
    add_context(headers)
    about = write.to_server
    path = served.path(write.path) if about is None else served.server_path(about)

    def attempt() -> Answered:
        if write.body is not None and not isinstance(write.body, bytes):
            write.body.seek(0)
        return served.connection.once(
            write.method,
            path,
            query=write.query,
            body=write.body,
            headers=headers,
            silence=write.silence,
        )

    return attempt


def _sendable(key: str | None) -> str | None:
    """A key as a header can have it. Another one is known by its digest."""
    if key is None or _KEY.fullmatch(key) is not None:
        return key
    return f"sha256-{hashlib.sha256(key.encode()).hexdigest()}"


def _told(answer: Answered, options: CommitOptions) -> Sent:
    """An answer that cannot be read says as little as none."""
    try:
        told = msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        what = what_is_wrong(error)
        raise Lost(f"The answer to the write cannot be read: {what}.", sent=True) from None
    repeated = bool(told.get("repeated")) and options.idempotency_key is not None
    return Sent(told, repeated, answer)


def _require_absent(served: ServedGraph, branch: str, key: str, error: OmnigraphError) -> None:
    """A refusal that follows on a lost answer may be due to the write itself: then it landed."""
    found = _look_up(served, branch, key)
    if found is not None:
        raise OutcomeUnknown(
            f"The write landed in commit {found}, and its answer was lost; what it says now is: "
            f"{error.message}",
            commit=found,
        ) from error


def _look_up(served: ServedGraph, branch: str, key: str) -> str | None:
    """The commit of a key, if it is known that there is one."""
    connection = served.connection
    query = {"branch": branch, "key": key}
    try:
        found = connection.repeat(
            lambda: connection.once("GET", served.path("/keys"), query=query),
            patience=_LAST_LOOK,
        )
    except OmnigraphError:
        return None
    commit = found.object.get("commit")
    return commit if isinstance(commit, str) else None


def _unknown(lost: Lost, commit: str | None, key: str) -> OutcomeUnknown:
    if commit is not None:
        return OutcomeUnknown(
            f"The write landed in commit {commit}, and its answer was lost: {lost.reason}",
            commit=commit,
            key=key,
        )
    return OutcomeUnknown(
        f"Whether the write landed is not known: {lost.reason}", commit="", key=key
    )


def send_json(
    served: ServedGraph,
    method: str,
    path: str,
    branch: str,
    body: Mapping[str, Any],
    options: CommitOptions,
    query: Query | None = None,
) -> Sent:
    """A write whose body is one JSON object."""
    data = json_body(dict(body) | {"message": options.message})
    return send(served, RemoteWrite(method, path, branch, data, query=query), options)


@contextlib.contextmanager
def landed(sent: Sent) -> Iterator[None]:
    """What is read here of a write that was answered: a failure is no failure of the write."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except (OmnigraphError, *WRONG) as error:
        what = error.message if isinstance(error, OmnigraphError) else what_is_wrong(error)
        commit = sent.told.get("commit")
        raise OutcomeUnknown(
            f"The server has answered the write, but what came of it cannot be told: {what}",
            commit=commit if isinstance(commit, str) else "",
        ) from error


def commit_in(served: ServedGraph, sent: Sent, name: str = "commit") -> Commit | None:
    """The commit that a write made; None if there is none, or an earlier call had made it."""
    record = sent.told.get("lineage")
    if record is not None:
        return commit_of(record)
    made = sent.told.get(name)
    if made is None or sent.repeated:
        return None
    return commit_of(served.get(f"/commits/{made}"))
