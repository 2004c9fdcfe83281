"""Owns the reports of embedding: before, during and after a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger

COMMIT_EVERY = 10_000


@dataclass(frozen=True)
class Refused:
    """A text that the provider does not accept. Its vector stays null."""

    id: str
    reason: str


@dataclass(frozen=True)
class EmbeddedProperty:
    """`texts` waited for a vector, with about this many `tokens`, which may cost money if `paid`.
    `embedded` of them have one now. `refused` are the first of `refusals` texts that the provider
    does not accept. The others were changed meanwhile, or are beyond the limit."""

    type: str
    property: str
    source: str
    model: str
    paid: bool
    texts: int
    tokens: int
    embedded: int = 0
    refusals: int = 0
    refused: tuple[Refused, ...] = ()


@dataclass(frozen=True)
class Embedded:
    """`properties` are all that were examined. `commits` is empty for a dry run, or if nothing
    waited."""

    branch: str
    properties: tuple[EmbeddedProperty, ...]
    commits: tuple[Commit, ...] = ()
    repeated: bool = False
    io: Ledger = field(default_factory=Ledger, repr=False, compare=False)

    @property
    def texts(self) -> int:
        return sum(one.texts for one in self.properties)

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.properties)

    @property
    def embedded(self) -> int:
        return sum(one.embedded for one in self.properties)

    @property
    def refusals(self) -> int:
        return sum(one.refusals for one in self.properties)

    @property
    def paid(self) -> bool:
        """Whether any waiting text may cost money."""
        return any(one.paid and one.texts for one in self.properties)

    @property
    def commit(self) -> Commit | None:
        """The last one."""
        return self.commits[-1] if self.commits else None


@dataclass(frozen=True)
class EmbedProgress:
    """`done` of the `texts` of a property have their vector, or were refused."""

    type: str
    property: str
    done: int
    texts: int


OnEmbedProgress = Callable[[EmbedProgress], None]
