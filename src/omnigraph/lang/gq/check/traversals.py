"""Owns the types of traversals: which edges join which ends, in which direction, up to a fixpoint.

Every traversal keeps the steps (edge and direction) that are still possible. The types of its ends
narrow the steps, and the steps narrow the ends, until nothing changes. If both directions remain
possible, the edge is followed forward.
"""

from __future__ import annotations

from typing import Final

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.scope import Context, Known
from omnigraph.lang.gq.checked import UNBOUNDED, Direction, EdgeStep, Traversal
from omnigraph.model.catalog import EdgeType

LARGEST_BOUND: Final = 1_000


class Open:
    """A traversal while its steps are being found. It does not narrow outer ends: `source` and
    `target` hold the types that they may have here."""

    def __init__(self, node: tree.Traversal, source: Known, target: Known, edge: Known | None):
        self.node = node
        self.source = source
        self.target = target
        self.edge = edge
        self.steps: list[EdgeStep] = []
        self.found: Traversal | None = None

    def starts(self) -> frozenset[str]:
        return frozenset(name for step in self.steps for name in _ends(step)[0])

    def stops(self) -> frozenset[str]:
        return frozenset(name for step in self.steps for name in _ends(step)[1])


def resolve(open_: list[Open], fixed: frozenset[int], context: Context) -> list[Traversal]:
    """The steps of all traversals of one pattern. `fixed` are the ids of outer variables."""
    live = [t for t in open_ if _find_steps(t, context)]
    live = _spread(live, fixed, context)
    # Both directions may be left: forward first where the source is known, then the target.
    for is_free in (_source_is_known, _target_is_known, _any):
        for traversal in live:
            if is_free(traversal) and _prefer_forward(traversal):
                live = _spread(live, fixed, context)
    return [t for t in (_finish(traversal, context) for traversal in live) if t is not None]


def _source_is_known(traversal: Open) -> bool:
    return traversal.source.types is not None


def _target_is_known(traversal: Open) -> bool:
    return traversal.target.types is not None


def _any(_: Open) -> bool:
    return True


def _ends(step: EdgeStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    source, target = step.edge.source, step.edge.target
    match step.direction:
        case Direction.FORWARD:
            return (source,), (target,)
        case Direction.BACKWARD:
            return (target,), (source,)
        case Direction.EITHER:
            return (source, target), (target, source)


def _find_steps(traversal: Open, context: Context) -> bool:
    """Every step that the hop names. False after an error."""
    hop = traversal.node.hop
    if hop.names:
        edges = [e for name in hop.names for e in _edges(name, context)]
        edges = list(dict.fromkeys(edges)) if len(edges) > 1 else edges
        traversal.steps = _named_steps(edges, hop, context)
        return bool(traversal.steps)
    for end, known in ((traversal.node.source, traversal.source), _target(traversal)):
        if not known.is_declared and not known.is_broken:
            message = f"`*` needs both ends declared, and `${end.name}` is not"
            help_ = f"write `${end.name}: Type`"
            context.findings.add("T5", end.span, message, help_)
            return False
    edges = list(context.names.catalog.edges)
    directions = [Direction.FORWARD] if not hop.is_undirected else list(_BOTH)
    traversal.steps = [EdgeStep(e, d) for e in edges for d in directions]
    return bool(traversal.steps) or not _joins_nothing(traversal, context)


_BOTH: Final = (Direction.FORWARD, Direction.BACKWARD)


def _target(traversal: Open) -> tuple[tree.Variable, Known]:
    return traversal.node.target, traversal.target


def _edges(name: tree.Name, context: Context) -> list[EdgeType]:
    found = context.names.edges(name.text)
    if len(found) == 1:
        return found
    if found:
        shown = " and ".join(f"`{edge.name}`" for edge in found)
        message = f"`{name.text}` may be {shown}"
        context.findings.add("T4", name.span, message, "write one of them exactly")
    else:
        message = f"there is no edge type `{name.text}`"
        meant = Meant(name.text, context.names.traversable)
        context.findings.add("T4", name.span, message, meant)
    return []


def _named_steps(edges: list[EdgeType], hop: tree.Hop, context: Context) -> list[EdgeStep]:
    steps: list[EdgeStep] = []
    for edge in edges:
        is_same = edge.source == edge.target
        if not hop.is_undirected:
            directions = _BOTH[:1] if is_same else _BOTH
            steps.extend(EdgeStep(edge, direction) for direction in directions)
        elif is_same:
            steps.append(EdgeStep(edge, Direction.EITHER))
        else:
            ends = f"from `{edge.source}` to `{edge.target}`"
            message = f"`{edge.name}` goes {ends}, so it has one direction"
            help_ = "`<e>` is for edges between nodes of one type"
            context.findings.add("T22", hop.span, message, help_)
            return []
    return steps


def _spread(live: list[Open], fixed: frozenset[int], context: Context) -> list[Open]:
    """Narrows steps and ends by each other until nothing changes. Drops steps that join nothing."""
    changed = True
    while changed:
        changed = False
        for traversal in list(live):
            before = len(traversal.steps)
            traversal.steps = [s for s in traversal.steps if _fits(s, traversal)]
            if not traversal.steps:
                _joins_nothing(traversal, context)
                live.remove(traversal)
                continue
            changed |= len(traversal.steps) != before
            changed |= _narrow(traversal.source, traversal.starts(), fixed)
            changed |= _narrow(traversal.target, traversal.stops(), fixed)
    return live


def _fits(step: EdgeStep, traversal: Open) -> bool:
    starts, stops = _ends(step)
    source, target = traversal.source.types, traversal.target.types
    pairs = zip(starts, stops, strict=True)
    return any(
        (source is None or start in source) and (target is None or stop in target)
        for start, stop in pairs
    )


def _narrow(known: Known, types: frozenset[str], fixed: frozenset[int]) -> bool:
    if known.id in fixed:
        return False
    narrowed = types if known.types is None else known.types & types
    changed = narrowed != known.types
    known.types = narrowed
    return changed


def _prefer_forward(traversal: Open) -> bool:
    """Drops the backward step of each edge that can also be followed forward. Returns whether there
    was one."""
    if not traversal.node.hop.names and traversal.node.hop.is_undirected:
        return False
    forward = {s.edge.name for s in traversal.steps if s.direction is Direction.FORWARD}
    kept = [
        s
        for s in traversal.steps
        if s.direction is not Direction.BACKWARD or s.edge.name not in forward
    ]
    changed = len(kept) != len(traversal.steps)
    traversal.steps = kept
    return changed


def _joins_nothing(traversal: Open, context: Context) -> bool:
    source, target, hop = traversal.source, traversal.target, traversal.node.hop
    if source.is_broken or target.is_broken:
        return True
    left = f"`${source.name or '_'}`{_typed(source)}"
    right = f"`${target.name or '_'}`{_typed(target)}"
    if not hop.names:
        message = f"no edge type goes from {left} to {right}"
        context.findings.add("T5", traversal.node.span, message)
        return True
    edges = [e for name in hop.names for e in context.names.edges(name.text)]
    shown = ", ".join(f"`{e.name}: {e.source} -> {e.target}`" for e in edges)
    message = f"{shown} does not join {left} and {right}"
    context.findings.add("T5", traversal.node.span, message)
    return True


def _typed(known: Known) -> str:
    return f" ({'|'.join(sorted(known.types))})" if known.types else ""


def _finish(traversal: Open, context: Context) -> Traversal | None:
    node, steps = traversal.node, _merged(traversal.steps)
    if traversal.edge is not None:
        traversal.edge.edges = tuple(dict.fromkeys(step.edge for step in steps))
    if not _check_bounds(node, steps, context):
        return None
    traversal.found = Traversal(
        traversal.source.id,
        traversal.target.id,
        tuple(steps),
        traversal.edge.id if traversal.edge else None,
        node.bounds.low if node.bounds else 1,
        _highest(node.bounds) if node.bounds else 1,
    )
    return traversal.found


def _highest(bounds: tree.Bounds) -> int:
    return UNBOUNDED if bounds.high is None else bounds.high


def _merged(steps: list[EdgeStep]) -> list[EdgeStep]:
    """Forward and backward steps along one edge between nodes of one type become one step."""
    ways: dict[str, list[EdgeStep]] = {}
    for step in steps:
        ways.setdefault(step.edge.name, []).append(step)
    merged: list[EdgeStep] = []
    for both in ways.values():
        edge = both[0].edge
        if len(both) == 2 and edge.source == edge.target:
            merged.append(EdgeStep(edge, Direction.EITHER))
        else:
            merged += both
    return merged


def _check_bounds(node: tree.Traversal, steps: list[EdgeStep], context: Context) -> bool:
    bounds = node.bounds
    if bounds is None:
        return True
    message = _bounds_problem(bounds, steps)
    if message:
        context.findings.add("T15", bounds.span, message)
    if node.edge is not None:
        message_ = "an edge variable stands for one edge, so it takes no bounds"
        context.findings.add("T23", _joint(node.edge.span, bounds.span), message_)
    return message is None and node.edge is None


def _bounds_problem(bounds: tree.Bounds, steps: list[EdgeStep]) -> str | None:
    high = _highest(bounds)
    if bounds.low > high:
        return f"the lower bound {bounds.low} is above the upper bound {high}"
    if bounds.high is not None and bounds.high > LARGEST_BOUND:
        return (
            f"paths are followed for at most {LARGEST_BOUND} hops; `{{{bounds.low},}}` has no end"
        )
    if bounds.low > LARGEST_BOUND:
        return f"a lower bound is at most {LARGEST_BOUND}"
    mixed = next((s.edge for s in steps if s.edge.source != s.edge.target), None)
    if mixed is None or (bounds.low, high) == (1, 1):
        return None
    where = f"`{mixed.name}` goes from `{mixed.source}` to `{mixed.target}`"
    if high > 1:
        return f"{where}, so it cannot be followed twice"
    return f"{where}, so no node is its own end at distance 0"


def _joint(first: Span, last: Span) -> Span:
    return Span(first.start, last.end)
