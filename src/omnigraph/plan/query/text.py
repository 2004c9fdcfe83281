"""Owns the text of a checked expression, as a user would write it, for plans and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, assert_never

import msgspec

from omnigraph.lang.gq.checked import (
    Aggregate,
    AggregateValue,
    And,
    Arithmetic,
    Bm25,
    Comparison,
    Concatenation,
    Conditional,
    Constant,
    EntityValue,
    Exists,
    Expression,
    FunctionCall,
    Highlight,
    ItemValue,
    KeyValue,
    ListValue,
    Membership,
    Nearest,
    Negative,
    Not,
    NullTest,
    Or,
    OutputValue,
    ParameterValue,
    PathValue,
    PatternAggregate,
    PropertyValue,
    Quantified,
    RowProperty,
    RowSystem,
    Rrf,
    SameEntity,
    SystemValue,
    TextSearch,
    TextTest,
    TypeTest,
    Variable,
)


def expression_text(
    value: Expression, variables: Mapping[int, Variable], columns: Sequence[str] = ()
) -> str:
    return _Text(variables, columns).of(value)


class _Text:
    def __init__(self, variables: Mapping[int, Variable], columns: Sequence[str]) -> None:
        self._variables = variables
        self._columns = columns

    def of(self, value: Expression) -> str:  # noqa: C901 - one line for each kind
        match value:
            case Constant(value=held):
                return _literal(held)
            case ParameterValue(name=name):
                return f"${name}"
            case PropertyValue(variable=key, properties=properties):
                return f"{self._name(key)}.{properties[0].name}"
            case SystemValue(variable=key, column=column):
                return f"{self._name(key)}.@{column}"
            case EntityValue(variable=key):
                return self._name(key)
            case PathValue(traversal=traversal, part=part):
                ends = f"{self._name(traversal.source)} … {self._name(traversal.target)}"
                return f"{part}({ends})"
            case RowProperty(property=held):
                return held.name
            case RowSystem(column=column):
                return f"@{column}"
            case And(operands=operands):
                return "(" + " and ".join(map(self.of, operands)) + ")"
            case Or(operands=operands):
                return "(" + " or ".join(map(self.of, operands)) + ")"
            case Not(operand=operand):
                return f"not {self.of(operand)}"
            case (
                Comparison(operator=operator, left=left, right=right)
                | Arithmetic(operator=operator, left=left, right=right)
            ):
                return f"{self.of(left)} {operator} {self.of(right)}"
            case Concatenation(left=left, right=right):
                return f"{self.of(left)} + {self.of(right)}"
            case TextTest(operator=operator, text=text, part=part):
                return f"{self.of(text)} {operator} {self.of(part)}"
            case Membership(item=item, list=held):
                return f"{self.of(item)} in {self.of(held)}"
            case NullTest(operand=operand, negated=negated):
                return f"{self.of(operand)} is {'not ' if negated else ''}null"
            case Negative(operand=operand):
                return f"-{self.of(operand)}"
            case ListValue(items=items):
                return "[" + ", ".join(map(self.of, items)) + "]"
            case FunctionCall(function=function, arguments=arguments):
                return f"{function}({', '.join(map(self.of, arguments))})"
            case Conditional(conditions=conditions, results=results, otherwise=otherwise):
                pairs = zip(conditions, results, strict=True)
                taken = " ".join(f"when {self.of(a)} then {self.of(b)}" for a, b in pairs)
                return f"case {taken} else {self.of(otherwise)} end"
            case ItemValue(name=name):
                return f"${name}"
            case Quantified(word=word, item=item, items=items, condition=condition):
                return f"{word}(${item.name} in {self.of(items)} where {self.of(condition)})"
            case Aggregate(function=function, argument=argument, distinct=distinct):
                return f"{function}({'distinct ' if distinct else ''}{self.of(argument)})"
            case SameEntity(left=one, right=other, negated=negated):
                return f"{self._name(one)} {'!=' if negated else '='} {self._name(other)}"
            case TypeTest(variable=key, types=types):
                return f"{self._name(key)}: {'|'.join(t.name for t in types)}"
            case Nearest(target=target, query=looked_for):
                return f"nearest({self.of(target)}, {self.of(looked_for)})"
            case Bm25(target=target, words=words):
                return f"bm25({self.of(target)}, {self.of(words)})"
            case Highlight(target=target, words=words):
                return f"highlight({self.of(target)}, {self.of(words)})"
            case TextSearch(function=function, target=target, words=words, edits=edits):
                more = f", {self.of(edits)}" if edits is not None else ""
                return f"{function}({self.of(target)}, {self.of(words)}{more})"
            case Rrf(ranks=ranks, k=k):
                return f"rrf({', '.join(map(self.of, ranks))}, k={self.of(k)})"
            case Exists():
                return "exists { … }"
            case PatternAggregate(function=function, argument=argument):
                shown = f"({self.of(argument)})" if argument is not None else ""
                return f"{function}{shown} {{ … }}"
            case OutputValue(index=index):
                return self._columns[index] if index < len(self._columns) else f"#{index + 1}"
            case KeyValue(index=index) | AggregateValue(index=index):
                return f"#{index + 1}"
            case _:
                assert_never(value)

    def _name(self, key: int) -> str:
        variable = self._variables.get(key)
        if variable is None or variable.name is None:
            return f"$_{key}"
        return f"${variable.name}"


def _literal(value: Any) -> str:
    if isinstance(value, date):
        return f'"{value.isoformat()}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return msgspec.json.encode(value).decode()
