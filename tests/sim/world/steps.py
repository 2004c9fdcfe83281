"""Owns steps: what somebody does in a world, as data, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from tests.sim.world.model import State

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from tests.sim.world.world import World


class Fault(AssertionError):
    """The graph did what it must not."""


DAMAGE = frozenset({"corrupt", "store_failure", "error", "outcome_unknown", "unsafe_store"})
"""Codes that mean damage where no request has failed."""
Shown = dict[str, dict[str, dict[str, Any]]]
"""Rows by type and identity, as users see them."""


def compare(what: str, wanted: Shown, seen: Shown) -> None:
    if wanted != seen:
        told = "\n".join(tell_difference(wanted, seen))
        raise Fault(f"{what} shows something else than the model says:\n{told}")


def tell_difference(wanted: Shown, seen: Shown) -> Iterator[str]:
    for name in sorted(wanted.keys() | seen.keys()):
        if name not in wanted or name not in seen:
            yield f"  the type {name} is {'new' if name in seen else 'missing'}"
            continue
        for key in sorted(wanted[name].keys() | seen[name].keys()):
            must, has = wanted[name].get(key), seen[name].get(key)
            if must != has:
                yield f"  {name} {key}: is {has}, and must be {must}"


@dataclass(frozen=True)
class Step:
    """`by` names the handle. Whatever `args` refer to is looked up when the step is taken, so a
    program stays one when steps are left out."""

    number: int
    op: str
    by: str
    args: Mapping[str, Any] = field(default_factory=dict)
    round: int = 0
    """Steps of one round are taken at the same time, unless it is 0."""

    @property
    def label(self) -> str:
        return f"s{self.number}"

    def __str__(self) -> str:
        args = ", ".join(f"{name}={_short(value)}" for name, value in self.args.items())
        together = f" round {self.round}" if self.round else ""
        return f"{self.number:3} {self.by:4}{together} {self.op}({args})"


def _short(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "[" + "; ".join(_short(one) for one in value) + "]"
    return str(value)


@dataclass
class Record:
    """A step that was taken. `facts` are what it found out while it ran."""

    step: Step
    outcome: str = "under way"
    """ok, refused, unknown or crashed."""
    error: str = ""
    code: str = ""
    commit: str | None = None
    repeated: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def args(self) -> Mapping[str, Any]:
        return self.step.args

    def __str__(self) -> str:
        return f"{self.step} -> {self.outcome}{' ' + self.code if self.code else ''}"


Draw = Callable[["World", Random], Mapping[str, Any] | None]
Foresee = Callable[["World", Step], None]
Perform = Callable[["World", "Graph", Record], None]
Effect = Callable[["World", Record, State, tuple[str, ...]], State]
Settle = Callable[["World", Record], None]


@dataclass(frozen=True)
class Operation:
    """`covers` are the methods that it calls. `foresee` raises if the model says that it must be
    refused; `effect` is what its commit makes of the state before; `settle` tells the model what
    else came of it."""

    name: str
    weight: float
    covers: tuple[str, ...]
    draw: Draw
    perform: Perform
    foresee: Foresee
    effect: Effect | None = None
    settle: Settle = lambda world, record: None
    reads: bool = False
    """It changes nothing, so that anybody may do it, who reads only too."""
    handed: bool = False
    """It goes through what an earlier step opened, whoever takes it now."""

    def is_reading(self, step: Step) -> bool:
        how = step.args.get("dry_run") or step.args.get("how") == "dry run"
        return bool(self.reads or how or step.args.get("write") is False)


OPERATIONS: dict[str, Operation] = {}


def operation(one: Operation) -> Operation:
    OPERATIONS[one.name] = one
    return one
