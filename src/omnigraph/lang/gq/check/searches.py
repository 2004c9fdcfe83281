"""Owns the search functions: where they are allowed and which arguments they take."""

from __future__ import annotations

from typing import Any, Final

from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.checker import Checker
from omnigraph.lang.gq.check.kinds import (
    BOOL,
    F64,
    I64,
    STRING,
    is_integer,
    is_number,
    is_text,
    shown,
)
from omnigraph.lang.gq.checked import (
    Bm25,
    Constant,
    Expression,
    Highlight,
    Nearest,
    ParameterValue,
    PropertyValue,
    RowProperty,
    Rrf,
    TextSearch,
    Type,
)
from omnigraph.lang.gq.walk import used_variables
from omnigraph.model.types import ListType, ScalarType, VectorType

RANKS: Final = ("nearest", "bm25", "rrf")
FUNCTIONS: Final = (*RANKS, "search", "match_text", "fuzzy", "highlight")
_K: Final = 60
_EDITS: Final = 2
"""The largest and the default number of edits for `fuzzy`."""


def check_search(checker: Checker, node: tree.Call, depth: int) -> Expression | None:
    name = node.function.text
    if name in RANKS and not checker.ranks:
        message = f"`{name}` ranks rows, so it is an order key or a projection"
        checker.add("T21", node.span, message)
        return None
    if node.is_distinct or (name != "rrf" and any(a.name for a in node.arguments)):
        checker.add(_code(name), node.span, f"`{name}` takes only values")
        return None
    if name == "rrf":
        return _rrf(checker, node, depth)
    if len(node.arguments) not in ((2, 3) if name == "fuzzy" else (2,)):
        checker.add(_code(name), node.span, f"`{name}` takes a property and what to look for")
        return None
    values = [checker.check(a.value, depth + 1) for a in node.arguments]
    if any(value is None for value in values):
        return None
    if isinstance(values[0], RowProperty):
        checker.add("T21", node.span, "a search cannot stand in a mutation")
        return None
    return _nearest(checker, node, values) if name == "nearest" else _text(checker, node, values)


def _code(name: str) -> str:
    return {"nearest": "T19", "rrf": "T21"}.get(name, "T20")


def _nearest(checker: Checker, node: tree.Call, values: list[Any]) -> Expression | None:
    target, query = values
    if not isinstance(target, PropertyValue) or not isinstance(target.type.kind, VectorType):
        message = f"`nearest` looks for vectors, and this is {shown(target)}"
        checker.add("T19", node.arguments[0].span, message, "name a Vector property: `$x.v`")
        return None
    if not _is_vector(query, target.type.kind):
        message = (
            f"`nearest` needs a {shown(target)} or a text to look for, and this is {_told(query)}"
        )
        checker.add("T19", node.arguments[1].span, message)
        return None
    if is_text(query.type.kind) and not all(prop.embed for prop in target.properties):
        name = target.properties[0].name
        message = f"`{name}` has no `@embed`, so there is no model that makes a vector of a text"
        help_ = f'give a vector, or say `@embed("source", model="…")` of `{name}` in the schema'
        checker.add("T19", node.arguments[1].span, message, help_)
        return None
    # A vector may have no direction, and then it has no distance.
    nullable = True
    return Nearest(target, query, Type(F64, nullable))


def _told(query: Expression) -> str:
    """As both sides are compared by their sizes, a list says its own."""
    if isinstance(query, Constant) and isinstance(query.value, tuple):
        return f"a list of {len(query.value)}"
    return shown(query)


def _is_vector(query: Expression, wanted: VectorType) -> bool:
    kind = query.type.kind
    if kind == wanted or is_text(kind):
        return True
    if not isinstance(kind, ListType) or not is_number(ScalarType(kind.item)):
        return False
    if isinstance(query, Constant) and isinstance(query.value, tuple):
        return len(query.value) == wanted.dimension
    return isinstance(query, ParameterValue)


def _text(checker: Checker, node: tree.Call, values: list[Any]) -> Expression | None:
    name: Any = node.function.text
    target, words = values[:2]
    if not isinstance(target, PropertyValue) or target.type.kind != STRING:
        message = f"`{name}` searches a String property, and this is {shown(target)}"
        checker.add("T20", node.arguments[0].span, message, "name a property: `$x.p`")
        return None
    if not is_text(words.type.kind):
        message = f"`{name}` needs a text to look for, and this is {shown(words)}"
        checker.add("T20", node.arguments[1].span, message)
        return None
    nullable = target.type.nullable or words.type.nullable
    if name == "bm25":
        return Bm25(target, words, Type(F64, nullable))
    if name == "highlight":
        return Highlight(target, words, Type(STRING, nullable))
    edits = None
    if name == "fuzzy":
        edits = values[2] if len(values) == 3 else Constant(_EDITS, Type(I64))
        if not is_integer(edits.type.kind):
            message = f"`fuzzy` takes a number of edits, and this is {shown(edits)}"
            checker.add("T20", node.arguments[2].span, message)
            return None
        if isinstance(edits, Constant) and edits.value not in range(_EDITS + 1):
            message = f"`fuzzy` allows 0, 1 or {_EDITS} edits, and this is {edits.value}"
            checker.add("T20", node.arguments[2].span, message)
            return None
    return TextSearch(name, target, words, edits, Type(BOOL, nullable))


def _rrf(checker: Checker, node: tree.Call, depth: int) -> Expression | None:
    ranks: list[Nearest | Bm25] = []
    k: Expression = Constant(_K, Type(I64))
    for place, argument in enumerate(node.arguments):
        value = checker.check(argument.value, depth + 1)
        if value is None:
            return None
        is_last = place == len(node.arguments) - 1 and place > 1
        named = argument.name is not None and argument.name.text == "k"
        if named or (argument.name is None and is_last and is_integer(value.type.kind)):
            k = value
            positive = not isinstance(k, Constant) or (isinstance(k.value, int) and k.value > 0)
            if is_integer(k.type.kind) and positive:
                continue
            checker.add("T21", argument.span, "`k` is a whole number above 0")
            return None
        if argument.name is not None or not isinstance(value, Nearest | Bm25):
            message = "`rrf` takes ranks: `nearest(…)` and `bm25(…)`, and `k`"
            checker.add("T21", argument.span, message)
            return None
        looked_for = value.query if isinstance(value, Nearest) else value.words
        if used_variables(looked_for):
            message = "what a rank within `rrf` looks for is the same for all rows"
            checker.add("T21", argument.span, message)
            return None
        ranks.append(value)
    if len(ranks) < 2:
        checker.add("T21", node.span, "`rrf` joins at least two ranks")
        return None
    return Rrf(tuple(ranks), k, Type(F64, k.type.nullable))
