"""Owns the phases of a load as values (pinned, read, resolved), and what an engine must offer to
get from one to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, Self, TypeVar

import msgspec
import numpy as np

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.rejected import RejectedFile
from omnigraph.engine.load.spool import Spool
from omnigraph.engine.session import Session
from omnigraph.errors import Conflict
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import GraphVersion
from omnigraph.plan.load.places import Reject
from omnigraph.plan.publish import Lineage, PublishPlan, TableAction

Mode = Literal["append", "merge", "overwrite"]


class LoadedType(Protocol):
    """The rows of one type in a load, wherever they are."""

    @property
    def kind(self) -> GraphType: ...

    @property
    def generated(self) -> bool:
        """Whether all ids were made for the load, so that no other row has them."""
        ...

    @property
    def left(self) -> int:
        """How many rows are not refused."""
        ...

    @property
    def replacing(self) -> bool:
        """Whether each row carries the address of the row that it replaces."""
        ...

    def without(self, places: np.ndarray) -> Self:
        """The same rows without those at some places, which are refused."""
        ...


H = TypeVar("H", bound=LoadedType)


@dataclass(frozen=True)
class Pinned:
    """The version that a load is checked against. `session` is held to the incarnation of the
    branch; `if_commit` is the commit that the caller asked for as head."""

    session: Session
    options: LoadOptions
    lineage: Lineage
    base: GraphView
    if_commit: str | None

    @property
    def mode(self) -> Mode:
        return self.options.mode  # type: ignore[return-value]


@dataclass(frozen=True)
class ReadRows(Generic[H]):
    """Everything that the sources hold: typed rows by table, and the rows that no type takes."""

    types: Mapping[str, H]
    rejects: tuple[Reject, ...] = ()
    files: tuple[RejectedFile, ...] = ()


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of checking and staging on one base. `checks` names the tables that a decision
    depends on. A job writes this value down for its next run."""

    actions: tuple[TableAction, ...]
    checks: tuple[str, ...]
    rejects: tuple[Reject, ...]
    files: tuple[RejectedFile, ...] = msgspec.field(name="aside")


class LoadEngine(Protocol[H]):
    """Holds the rows of a load and works on them. An engine serves one load: it reads once, and
    resolves once for each base."""

    @property
    def name(self) -> str: ...

    @property
    def spool(self) -> Spool: ...

    def running(self) -> AbstractContextManager[None]:
        """Holds what the engine needs while the load runs."""
        ...

    def remaining_options(self, options: LoadOptions) -> LoadOptions:
        """The options, without those that an earlier run of the same job has carried out."""
        ...

    def pin(self, pinned: Pinned) -> Pinned:
        """The base to use. It is that of an earlier run of the same job if the files of that run
        fit no other base."""
        ...

    def report(self, stage: str) -> None:
        """Tells the caller that a stage begins."""
        ...

    def read(self, pinned: Pinned) -> ReadRows[H]:
        """Reads and shapes every source."""
        ...

    def resolve(self, pinned: Pinned, read: ReadRows[H], *, replanned: bool) -> Resolved:
        """Checks everything against the base and stages it. A load that was `replanned` builds no
        indexes, because other writers wait behind it."""
        ...

    def creating(self, branch: str) -> None:
        """The load is about to create its branch."""
        ...

    def note(self, plan: PublishPlan) -> None:
        """The load is about to publish this plan."""
        ...

    def outlived(self, head: GraphVersion) -> bool:
        """Whether a cleanup that this head knows of may have deleted staged files."""
        ...

    def renew(self) -> None:
        """Forgets what was staged, because it may be gone."""
        ...


def require_kinds(snapshot: GraphView, kinds: Sequence[GraphType]) -> None:
    """Raises if another writer has changed one of the types since they were read."""
    for kind in kinds:
        if snapshot.catalog.by_key.get(kind.table_key) != kind:
            raise Conflict(f"The schema of {kind.name} changed while it was loaded.")
