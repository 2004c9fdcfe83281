"""Owns what embedding tells: of what waits, while it runs, and when it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Refused:
    """A text that the provider does not take; its vector stays null."""

    id: str
    reason: str


@dataclass(frozen=True)
class EmbeddedProperty:
    """`texts` waited for a vector, of about so many `tokens`, which may cost money if `paid`.
    `embedded` have one now. `refused` are the first of those that the provider does not take, of
    `refusals` in all; the rest were changed meanwhile, or are beyond the limit."""

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
    """`properties` are all that were looked at. `commits` are none for a dry run, or where nothing
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
        """Whether any text that waits may cost money."""
        return any(one.paid and one.texts for one in self.properties)

    @property
    def commit(self) -> Commit | None:
        """The last one."""
        return self.commits[-1] if self.commits else None


@dataclass(frozen=True)
class EmbedProgress:
    """`done` of `texts` of a property have their vector, or were refused one."""

    type: str
    property: str
    done: int
    texts: int


OnEmbedProgress = Callable[[EmbedProgress], None]
