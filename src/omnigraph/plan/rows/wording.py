"""Owns the sentences about rows whose names or types are wrong."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from omnigraph.lang.suggestions import near
from omnigraph.model.catalog import GraphType
from omnigraph.model.types import ListType, PropertyType, VectorType
from omnigraph.model.violation import show_text, show_value
from omnigraph.plan.rows.convert import expected_item_text, expected_text
from omnigraph.plan.rows.row_type import ENDS, RowType
from omnigraph.plan.rows.scalars import Converted, Misfit
from omnigraph.plan.violation_list import Rejects, ViolationList


def shown(facts: RowType, column: str) -> str:
    """A column as users call it: the ends of an edge are `from` and `to`."""
    return ENDS[column] if column in ENDS and column in facts.system else column


def rule_of(facts: RowType, column: str) -> str:
    """The rule that a column breaks by not being given properly."""
    if column in facts.system:
        return "id" if column == "id" else "endpoint"
    return "key" if column in facts.kind.key else "required"


def not_rows(type_name: str, rows: object) -> str:
    return (
        f"Rows of {type_name} must be a dict, a list of dicts, or a table of Arrow, pandas or "
        f"polars, but this is {show_value(rows)}."
    )


def unsound(type_name: str, error: Exception) -> str:
    return f"The rows of {type_name} cannot be used: {error}."


def not_a_row(type_name: str, row: object) -> str:
    return f"A row of {type_name} must be a dict of its properties, but this is {show_value(row)}."


def twice(facts: RowType, column: str) -> str:
    if column in ENDS and column in facts.system:
        return (
            f"{facts.kind.name} is given both `{ENDS[column]}` and `{column}`, "
            "which are the same end of the edge; give one of them."
        )
    return f"`{column}` of {facts.kind.name} is given twice; give it once."


def missing(facts: RowType, column: str, reason: str) -> str:
    name = f"`{shown(facts, column)}` of {facts.kind.name}"
    match rule_of(facts, column):
        case "endpoint":
            return f"{name} must be the id of a node, but {reason}."
        case "key":
            return f"{name} is part of the key and must be given, but {reason}."
        case _:
            return f"{name} is required, but {reason}."


def tell_unknown(facts: RowType, name: Hashable, row: int | None, findings: ViolationList) -> None:
    kind, names = facts.kind.name, [shown(facts, c) for c in facts.types]
    if not isinstance(name, str):
        message = f"Names of properties are strings, but {kind} is given {show_value(name)}."
        findings.add("unknown_property", message, property=show_value(name), row=row)
        return
    text = show_text(name)
    meant = near(name, facts.spellings)
    if meant is not None:
        advice = f"did you mean `{meant}`?"
    else:
        advice = f"it has {', '.join(f'`{n}`' for n in names)}."
    message = f"{kind} has no property `{text}`; {advice}"
    findings.add("unknown_property", message, property=text, row=row)


def misfit_sentence(kind: GraphType, name: str, type: PropertyType, misfit: Misfit) -> str:
    """Says that a value, or an item of a list, does not fit the type of its property."""
    if misfit.item is not None and isinstance(type, ListType | VectorType):
        what, needs = f"`{name}[{misfit.item}]`", expected_item_text(type)
    else:
        what, needs = f"`{name}`", expected_text(type)
    return f"{what} of {kind.name} must be {needs}, but {misfit.problem}."


def tell_misfits(facts: RowType, column: str, done: Converted, rejects: Rejects) -> None:
    """A violation for each value that does not fit; one for a column that does not."""
    kind, name = facts.types[column], shown(facts, column)
    rule = rule_of(facts, column) if column in facts.system else "type"
    if isinstance(kind, VectorType):
        rule = "vector"

    def sentence(misfit: Misfit) -> str:
        return misfit_sentence(facts.kind, name, kind, misfit)

    if done.whole:
        rejects.exclude(done.bad, column)
        first = done.misfits[0]
        row = int(rejects.positions[first.at])
        rejects.findings.add(rule, sentence(first), property=name, value=first.value, row=row)
        return
    told = {misfit.at: misfit for misfit in done.misfits}
    rejects.exclude(done.bad, column)
    rejects.findings.more += len(done.bad) - len(told)
    rejects.reject(
        np.array(sorted(told), dtype=np.int64),
        column,
        rule,
        lambda index: (sentence(told[index]), told[index].value),
        property=name,
    )
