"""Owns the caller: in whose name something is asked of a graph, as a credential says."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import InvalidArgument
from omnigraph.model.commit_text import read_word


@dataclass(frozen=True)
class Caller:
    """`roles` hold where there are no policy files. With `graphs` the caller reaches no other
    graph, whatever a policy says. `token` is the id of the credential, for the audit."""

    actor: str
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    graphs: frozenset[str] | None = None
    token: str | None = None

    def __post_init__(self) -> None:
        check_actor(self.actor)
        for name in ("groups", "roles", "graphs"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, frozenset):
                object.__setattr__(self, name, frozenset(given))


def check_actor(actor: object) -> str:
    """An actor names the branches below `agent/` that are its own, so it holds no `/`."""
    word = read_word("actor", actor)
    if not word or not word.strip() or "/" in word or not word.isprintable():
        raise InvalidArgument(
            f"{actor!r} is no actor.", help="An actor is a name of printable letters, without '/'."
        )
    return word
