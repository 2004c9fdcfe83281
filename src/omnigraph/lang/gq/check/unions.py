"""Owns unions: reads whose rows become one result."""

from __future__ import annotations

from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.kinds import joined, kind_text, shown
from omnigraph.lang.gq.check.match import Patterns
from omnigraph.lang.gq.check.returns import OrderExpressions, amounts_of, check_part
from omnigraph.lang.gq.check.scope import Context, Scope
from omnigraph.lang.gq.checked import (
    Column,
    EdgeKind,
    EntityListKind,
    Expression,
    Match,
    NodeKind,
    OrderKey,
    OutputValue,
    Read,
    Type,
)

_NOTHING = Match((), (), (), (), (), ())


def check_union(node: tree.Read, context: Context) -> Read | None:
    """None after an error."""
    before = len(context.findings.diagnostics)
    parts = [check_part(part, context) for part in node.parts]
    if len(set(node.unions)) > 1:
        message = "a query joins all its parts by `union`, or all by `union all`"
        context.findings.add("T26", node.others[-1].span, message)
    found = [part for part in parts if part is not None]
    columns = _columns(node, found, context) if len(found) == len(parts) else None
    order = _order(node, columns, context) if columns is not None else ()
    limit, offset = amounts_of(node, context)
    if columns is None or len(context.findings.diagnostics) > before:
        return None
    return Read(
        match=_NOTHING,
        group=None,
        columns=columns,
        distinct=not node.unions[0],
        order=order,
        limit=limit,
        offset=offset,
        parts=tuple(found),
    )


def _columns(node: tree.Read, parts: list[Read], context: Context) -> tuple[Column, ...] | None:
    first = parts[0]
    names = [column.name for column in first.columns]
    types = [column.type for column in first.columns]
    sound = True
    for part, written in zip(parts, node.parts, strict=True):
        theirs = [column.name for column in part.columns]
        if theirs != names:
            message = (
                f"this part has the columns {_listed(theirs)}, and the first has {_listed(names)}"
            )
            help_ = "give them the same names, in the same order, by `as`"
            context.findings.add("T26", written.span, message, help_)
            sound = False
            continue
        for place, column in enumerate(part.columns):
            kind = joined(types[place].kind, column.type.kind)
            projection = written.projections[place]
            if kind is None:
                both = f"{shown(column.type)}, and {shown(types[place])} before"
                message = f"`{names[place]}` is {both}"
                context.findings.add("T26", projection.span, message)
                sound = False
            elif isinstance(kind, NodeKind | EdgeKind | EntityListKind):
                message = f"a union has no entities among its columns, as `{kind_text(kind)}`"
                help_ = "return ids and properties"
                context.findings.add("T26", projection.span, message, help_)
                sound = False
            else:
                types[place] = Type(kind, types[place].nullable or column.type.nullable)
    if not sound:
        return None
    pairs = zip(names, types, strict=True)
    return tuple(Column(name, OutputValue(i, type_)) for i, (name, type_) in enumerate(pairs))


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _order(node: tree.Read, columns: tuple[Column, ...], context: Context) -> tuple[OrderKey, ...]:
    """The rows of a union are ordered by its columns."""
    expressions = OrderExpressions(context, Scope(), Patterns(context))
    held: list[tuple[str, Expression | None]] = [(c.name, c.value) for c in columns]
    expressions.columns = held
    keys = []
    for key in node.order:
        value = _named(key.value, held) or expressions.check(key.value)
        if value is None:
            continue
        if isinstance(value, OutputValue):
            keys.append(OrderKey(value, bool(key.is_descending)))
        else:
            message = "the rows of a union are ordered by its columns"
            context.findings.add("T9", key.span, message, "name a column")
    return tuple(keys)


def _named(
    node: tree.Expression, columns: list[tuple[str, Expression | None]]
) -> Expression | None:
    """`$p.name` in `order` is the column of this name: the variables of a part end with it."""
    match node:
        case tree.PropertyRef(variable=variable, property=prop):
            name = f"{variable.name}.{prop.text}"
        case tree.SystemRef(variable=tree.Variable(name=variable), column=column):
            name = f"{variable}.@{column.text}"
        case _:
            return None
    return next((value for known, value in columns if known == name), None)
