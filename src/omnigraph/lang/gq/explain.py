"""Owns the wording of syntax errors: what was found, what would fit, and what was probably
meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnigraph.lang.diagnostics import Diagnostic, Span
from omnigraph.lang.gq.grammar import Grammar
from omnigraph.lang.grammar_tables import expected_terminals
from omnigraph.lang.suggestions import near
from omnigraph.lang.tokens import END, Token, shorten

_OTHER_LANGUAGES: Final = {
    "where": "return",
    "select": "return",
    "with": "return",
    "create": "insert",
    "set": "update",
    "remove": "delete",
    "skip": "offset",
    "sort": "order",
    "orderby": "order",
    "by": "order",
    "having": "order",
    "like": "contains",
    "startswith": "starts_with",
    "endswith": "ends_with",
}
_SIGNS: Final = {
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "RSQB": "`]`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "QMARK": "`?`",
    "EQUAL": "`=`",
    "DOT": "`.`",
    "GT": "`>`",
    "AT": "an annotation",
    "REF": "a branch name",
    END: "the end of the text",
}
_OPERATORS: Final = frozenset(
    {"EQUAL", "NOT_EQUAL", "LT", "LE", "GT", "GE", "IN", "IS", "CONTAINS", "STARTS_WITH"}
    | {"ENDS_WITH", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "AND", "OR"}
)
_EXPRESSION: Final = frozenset(
    {"STRING", "TRUE", "FALSE", "NULL", "INTEGER", "FLOAT", "LSQB", "LPAR", "VAR", "NAME", "NEG"}
    | {"CALL", "EXISTS", "COUNT", "NOT", "ARG", "AT"}
)
_CLAUSE: Final = _EXPRESSION | {"LEAD", "OPTIONAL"}
_LITERAL: Final = frozenset({"STRING", "TRUE", "FALSE", "NULL", "INTEGER", "FLOAT", "NEG", "LSQB"})


def explain_token(
    grammar: Grammar, states: list[int], token: Token, words: Mapping[str, str]
) -> Diagnostic:
    """Why this token does not fit here."""
    wanted = expected_terminals(grammar, states)
    expected = describe(wanted, words)
    span = Span(token.start, token.end)
    if token.type == END:
        message = "the text ends in the middle of a query"
        return Diagnostic(code="Q008", message=message, span=span, expected=expected)
    return Diagnostic(
        code="Q001",
        message=f"unexpected {_shown(token)}",
        span=span,
        expected=expected,
        suggestion=_suggestion(wanted, token, words),
        replacement=_replacement(wanted, token, words),
    )


def explain_open_block(token: Token) -> Diagnostic:
    """The same for a part of a query, or the end of the text, where a block is still open."""
    if token.type == END:
        message = "the text ends inside a block"
    else:
        message = f"`{token.text}` stands inside a block that is still open"
    return Diagnostic(
        code="Q007",
        message=message,
        span=Span(token.start, token.end),
        expected=("`}`",),
        suggestion="close the block before it with `}`",
    )


def repair_keyword(
    grammar: Grammar, states: list[int], token: Token, words: Mapping[str, str]
) -> Token | None:
    """The keyword that a misspelled word stands for, so that the parser can continue with it."""
    meant = _meant(expected_terminals(grammar, states), token, words)
    return Token(words[meant], token.text, token.start) if meant else None


def describe(wanted: frozenset[str], words: Mapping[str, str]) -> tuple[str, ...]:
    """The terminals in words for a reader. Those that form one idea are combined."""
    found: list[str] = []
    if wanted >= {"LEAD", "OPTIONAL"}:
        found.append("a clause")
        wanted -= _CLAUSE
    elif wanted >= {"VAR", "CALL"}:
        found.append("an expression")
        wanted -= _EXPRESSION
    elif wanted >= {"STRING", "NEG"}:
        found.append("a literal")
        wanted -= _LITERAL
    if wanted >= {"PLUS", "STAR"} or wanted >= {"EQUAL", "IN"} or wanted >= {"AND", "OR"}:
        found.append("an operator")
        wanted -= _OPERATORS
    if wanted & {"NAME", "TYPE"}:
        found.append("a type name" if "TYPE" in wanted else "a name")
    if wanted & {"VAR", "LEAD"}:
        found.append("a variable")
    if wanted & {"INTEGER", "FLOAT"}:
        found.append("a number")
    found.extend(f"`{word}`" for word, terminal in words.items() if terminal in wanted)
    found.extend(f"`{t.lower()}`" for t in ("AND", "OR", "NOT", "IS", "IN", "NULL") if t in wanted)
    found.extend(text for name, text in _SIGNS.items() if name in wanted)
    return tuple(found)


def _meant(wanted: frozenset[str], token: Token, words: Mapping[str, str]) -> str | None:
    """The keyword for a word where no name fits."""
    if token.type not in {"NAME", "TYPE"} or wanted & {"NAME", "TYPE"}:
        return None
    fitting = [word for word, terminal in words.items() if terminal in wanted]
    other = _OTHER_LANGUAGES.get(token.text.lower())
    return other if other in fitting else near(token.text, fitting)


def _replacement(wanted: frozenset[str], token: Token, words: Mapping[str, str]) -> str | None:
    """What to write instead, where that is known."""
    if token.type == "EQUAL" and wanted == {"COLON"}:
        return ":"
    return _meant(wanted, token, words)


def _shown(token: Token) -> str:
    return "string" if token.type == "STRING" else f"`{shorten(token.text)}`"


def _suggestion(wanted: frozenset[str], token: Token, words: Mapping[str, str]) -> str | None:
    if meant := _meant(wanted, token, words):
        return f"did you mean `{meant}`?"
    if token.type == "EQUAL" and wanted == {"COLON"}:
        return "values are given with `:`"
    if wanted == {"COLON"}:
        return "write `name: value`"
    if token.type == "RBRACE" and "LEAD" in wanted:
        return "a block holds at least one clause"
    if token.type in {"LT", "GT", "LE", "GE", "EQUAL", "NOT_EQUAL"} and "AND" in wanted:
        return "comparisons are not chained: join two of them by `and`"
    if token.type == "STAR" and "RPAR" in wanted:
        return "write `count($x)`, or `count { … }` for a pattern"
    if token.type == "IN" and wanted >= {"EXISTS", "LBRACE"}:
        return "write `not` before the comparison: `not $x.p in $list`"
    if token.type in {"AND", "OR", "NOT", "IS", "IN", "NULL", "TRUE", "FALSE"}:
        return f"`{token.text}` is a reserved word; a property of this name is written after a dot"
    return None
