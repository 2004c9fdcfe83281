"""Owns where the lines of a formatted `.gq` text begin: a plan, by offsets into the text.

Queries, matches and the parts of a read have their own lines. Everything else in braces stays on
one line if it fits and contains no comment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from omnigraph.lang.comments import INDENT
from omnigraph.lang.diagnostics import Span
from omnigraph.lang.gq import tree
from omnigraph.lang.tokens import Token

WIDTH: Final = 100


class Plan:
    """`lines` and `closings` say where a line begins, and its depth; closings are braces. Lines in
    `apart` have a blank line before them. Tokens in `glued` have no space before them. A comma
    follows the tokens in `commas`, and those in `dropped` are removed."""

    def __init__(
        self, tokens: Sequence[Token], comments: Sequence[Token], draft: Plan | None = None
    ) -> None:
        """`draft` knows which commas are added and removed, so lengths are those of the final
        text."""
        self.lines: dict[int, int] = {}
        self.closings: dict[int, int] = {}
        self.apart: set[int] = set()
        self.glued: set[int] = set()
        self.commas: set[int] = set()
        self.dropped: set[int] = set()
        self.tokens = tokens
        self.starts = [token.start for token in tokens]
        self._comments = [comment.start for comment in comments]
        self._widths = [0]
        for token in tokens:
            width = len(token.text) + 1
            if draft is not None:
                width = 0 if token.start in draft.dropped else width
                width += len(", ") * (token.start in draft.commas)
            self._widths.append(self._widths[-1] + width)
        self._closing = _pairs(tokens)

    def at(self, offset: int) -> int:
        """The index of the token that begins here, or of the next one."""
        return bisect_left(self.starts, offset)

    def brace_before(self, offset: int) -> int:
        """The index of the last brace opened before an offset."""
        index = self.at(offset) - 1
        while self.tokens[index].type != "LBRACE":
            index -= 1
        return index

    def fits(self, start: int, brace: int, depth: int) -> bool:
        """Whether everything from `start` to the closing brace fits on a line."""
        last = self._closing[brace]
        end = self.starts[last]
        held = bisect_left(self._comments, end) - bisect_left(self._comments, start)
        width = self._widths[last + 1] - self._widths[self.at(start)]
        return not held and len(INDENT) * depth + width <= WIDTH

    def open(self, brace: int, items: Sequence[Span], depth: int) -> None:
        """Each item of the block gets a line."""
        self.closings[self.starts[self._closing[brace]]] = depth
        for item in items:
            self.lines[item.start] = depth + 1

    def separate(self, items: Sequence[Span]) -> None:
        """One comma between any two items, and none after the last."""
        for index, item in enumerate(items):
            after = self.at(item.end)
            has_comma = self.tokens[after].type == "COMMA"
            is_last = index == len(items) - 1
            if has_comma and is_last:
                self.dropped.add(self.starts[after])
            elif not has_comma and not is_last:
                self.commas.add(self.starts[after - 1])


def _pairs(tokens: Sequence[Token]) -> dict[int, int]:
    found: dict[int, int] = {}
    open_: list[int] = []
    for index, token in enumerate(tokens):
        if token.type == "LBRACE":
            open_.append(index)
        elif token.type == "RBRACE" and open_:
            found[open_.pop()] = index
    return found


def plan_layout(file: tree.File, tokens: Sequence[Token], comments: Sequence[Token]) -> Plan:
    draft = Plan(tokens, comments)
    _lay_out(draft, file)
    plan = Plan(tokens, comments, draft)
    _lay_out(plan, file)
    return plan


def _lay_out(plan: Plan, file: tree.File) -> None:
    before: Any = None
    for item in file.items:
        plan.lines[item.span.start] = 0
        both = isinstance(before, _SHORT) and isinstance(item, _SHORT)
        if before is not None and not both:
            plan.apart.add(item.span.start)
        query = item.query if isinstance(item, tree.Explain) else item
        if isinstance(query, tree.Query):
            _query(plan, query)
        before = item
    for node in _nodes(file):
        _glue(plan, node)


_SHORT: Final = (tree.BranchCreate, tree.BranchDelete, tree.BranchMerge, tree.BranchList)


def _query(plan: Plan, query: tree.Query) -> None:
    depth = 0
    body = query.body
    parts = (body,) if isinstance(body, tree.Read) else body or ()
    if query.name is not None:
        brace = plan.brace_before(parts[0].span.start)
        plan.open(brace, [part.span for part in parts], 0)
        depth = 1
    for index, part in enumerate(parts):
        if index:
            plan.lines[part.span.start] = depth
        if isinstance(part, tree.Read):
            _read(plan, part, depth)
        elif not isinstance(part, tree.Delete):
            _assignments(plan, part, depth)


def _read(plan: Plan, read: tree.Read, depth: int) -> None:
    for part, is_all in zip(read.parts, (None, *read.unions), strict=True):
        if is_all is not None:
            start = plan.at(part.span.start)
            plan.lines[plan.starts[start - (2 if is_all else 1)]] = depth
            plan.lines[part.span.start] = depth
        _part(plan, part, depth)
    if read.order:
        brace = plan.brace_before(read.order[0].span.start)
        plan.lines[plan.starts[brace - 1]] = depth
        _list(plan, plan.starts[brace - 1], brace, [k.span for k in read.order], depth)
    for index, amount in enumerate(read.amounts):
        if not index:
            plan.lines[amount.span.start] = depth


def _part(plan: Plan, read: tree.Read, depth: int) -> None:
    brace = plan.brace_before(read.clauses[0].span.start)
    plan.open(brace, [clause.span for clause in read.clauses], depth)
    _clauses(plan, read.clauses, depth + 1)
    brace = plan.brace_before(read.projections[0].span.start)
    start = plan.starts[brace - (2 if read.is_distinct else 1)]
    plan.lines[start] = depth
    _list(plan, start, brace, [p.span for p in read.projections], depth)


def _list(plan: Plan, start: int, brace: int, items: Sequence[Span], depth: int) -> None:
    plan.separate(items)
    if not plan.fits(start, brace, depth):
        plan.open(brace, items, depth)


def _clauses(plan: Plan, clauses: Sequence[tree.Clause], depth: int) -> None:
    for clause in clauses:
        if isinstance(clause, tree.Block):
            brace = plan.brace_before(clause.clauses[0].span.start)
            is_simple = len(clause.clauses) == 1 and not isinstance(clause.clauses[0], tree.Block)
            if not is_simple or not plan.fits(clause.span.start, brace, depth):
                plan.open(brace, [inner.span for inner in clause.clauses], depth)
            _clauses(plan, clause.clauses, depth + 1)
        elif isinstance(clause, tree.Binding) and clause.entries:
            brace = plan.brace_before(clause.entries[0].span.start)
            _list(plan, clause.span.start, brace, [e.span for e in clause.entries], depth)


def _assignments(plan: Plan, node: tree.Insert | tree.Update, depth: int) -> None:
    if node.assignments:
        brace = plan.brace_before(node.assignments[0].span.start)
        _list(plan, node.span.start, brace, [a.span for a in node.assignments], depth)


def _nodes(file: tree.File) -> Iterator[msgspec.Struct]:
    stack: list[Any] = [file]
    while stack:
        top = stack.pop()
        if isinstance(top, tuple):
            stack.extend(top)
        elif isinstance(top, msgspec.Struct) and not isinstance(top, Span):
            yield top
            stack.extend(getattr(top, name) for name in top.__struct_fields__)


def _glue(plan: Plan, node: object) -> None:
    """No spaces inside hops, bounds and `name=value`, nor after the sign of a number."""
    match node:
        case tree.Hop(span=span):
            _tighten(plan, span)
        case tree.Bounds(span=span):
            plan.glued.add(span.start)
            _tighten(plan, span)
        case tree.Traversal(edge=tree.Variable(), hop=hop):
            plan.glued.add(hop.span.start)
        case tree.Unary(operator="-", span=span) | tree.Default(span=span):
            index = plan.at(span.start)
            while plan.tokens[index].type == "LPAR":
                index += 1
            if plan.tokens[index].type == "MINUS":
                plan.glued.add(plan.starts[index + 1])
        case (
            tree.Argument(name=tree.Name(), span=span)
            | tree.AnnotationValue(name=tree.Name(), span=span)
        ):
            index = plan.at(span.start)
            plan.glued.update(plan.starts[index + 1 : index + 3])
        case (
            tree.BranchCreate(name=name, source=other) | tree.BranchMerge(source=name, target=other)
        ):
            _tighten(plan, name.span)
            if other is not None:
                _tighten(plan, other.span)
        case tree.BranchDelete(name=name):
            _tighten(plan, name.span)
        case _:
            pass


def _tighten(plan: Plan, span: Span) -> None:
    first, last = plan.at(span.start), plan.at(span.end)
    plan.glued.update(plan.starts[first + 1 : last])
