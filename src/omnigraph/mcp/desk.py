"""Owns the place where the work of a model is done: on which graph, for whom, in which threads, and
how much of an answer a model is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from omnigraph.engine.protocols import GraphLike
from omnigraph.errors import BranchExists, BranchNotFound

T = TypeVar("T")
ROWS, MOST_ROWS = 100, 1_000
CHARACTERS = 20_000
CELL = 500
SECONDS = 20.0


class Desk(Protocol):
    """`graph` is the name of the graph, `actor` who acts. Without `merges` there is no tool that
    merges. Work runs in threads; `ask` is for queries, which may take memory."""

    @property
    def graph(self) -> str: ...

    @property
    def actor(self) -> str: ...

    @property
    def merges(self) -> bool: ...

    async def read(self, work: Callable[[GraphLike], T]) -> T: ...

    async def ask(self, work: Callable[[GraphLike, int | None], T]) -> T: ...

    async def write(self, work: Callable[[GraphLike], T]) -> T: ...


@dataclass(frozen=True)
class Seat:
    """What a tool knows beside its arguments: for whom it works, and how much memory a query may
    take."""

    graph: str
    actor: str
    memory: int | None = None

    @property
    def own(self) -> str:
        """The branch to which the actor writes if it names none."""
        return f"agent/{self.actor}"


def require_own(g: GraphLike, seat: Seat) -> tuple[str, bool]:
    """The actor's own branch, made from `main` if it is not there, and whether it was made."""
    try:
        g.branch(seat.own)
    except BranchNotFound:
        try:
            g.create_branch(seat.own, "main")
        except BranchExists:  # another session of the same actor was faster
            return seat.own, False
        return seat.own, True
    return seat.own, False
