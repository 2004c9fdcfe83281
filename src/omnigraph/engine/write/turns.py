"""Owns a writer's turn among those of its machine, and the head that goes from one to the next.

A writer that waited knows an old head. Without help it would read every version that came
meanwhile. What it is handed is only a place to begin at; the put proves it, or does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from omnigraph.engine.session import Session
from omnigraph.errors import OmnigraphError
from omnigraph.model.version import GraphVersion
from omnigraph.store.queue import Turn
from omnigraph.store.versions import decode_version, encode_version, version_key

_FRESH = 5.0
"""For how many seconds a head counts that was left for the next writer."""
_TIME = 8


@contextlib.contextmanager
def take_turn(session: Session, name: str, deadline: float, *, queues: bool) -> Iterator[Turn]:
    """Waits among the writers of this machine, for at most half of the time that is left."""
    if session.queue is None or not queues:
        yield Turn(False)
        return
    patience = max(0.0, deadline - session.runtime.monotonic()) / 2
    with session.queue.turn(name, patience) as turn:
        yield turn


def hand_on(session: Session, turn: Turn, version: GraphVersion) -> None:
    """Leaves a head for the next writer, where there may be one."""
    if turn.waited or session.has_company(version.branch):
        time = session.runtime.now().to_bytes(_TIME)
        turn.leave(time + encode_version(version))


def handed_on(session: Session, turn: Turn, name: str) -> GraphVersion | None:
    """The head that the writer before left, or that is known here if that is newer. None if nobody
    left one that still counts."""
    left = turn.left() if turn.waited else b""
    if len(left) <= _TIME:
        return None
    age = (session.runtime.now() - int.from_bytes(left[:_TIME])) / 1e6
    if not 0 <= age <= min(_FRESH, session.settings.grace / 8):
        return None
    known = session.known_head(name)
    try:
        version = decode_version(left[_TIME:], version_key(name, 1))
    except OmnigraphError:
        return None  # whoever left it was stopped, or is another program
    if known is None or (version.branch, version.graph) != (name, known.graph):
        return None
    if version.version > known.version:
        session.heard_head(version, age)
        return version
    return known
