"""Owns the wording of syntax errors: what was found, what would fit, and what was probably
meant."""

from __future__ import annotations

from typing import Final

from omnigraph.lang.diagnostics import Diagnostic, Span
from omnigraph.lang.grammar_tables import expected_terminals
from omnigraph.lang.pg.grammar import SchemaGrammar
from omnigraph.lang.pg.lexer import DECLARATIONS
from omnigraph.lang.suggestions import near
from omnigraph.lang.tokens import END, Token, shorten

_DECLARING: Final = {
    "class": "node",
    "entity": "node",
    "table": "node",
    "type": "node",
    "vertex": "node",
    "link": "edge",
    "relation": "edge",
    "relationship": "edge",
    "abstract": "interface",
    "trait": "interface",
}
_IMPLEMENTING: Final = ("extends", "implement", "inherits", "with")
_WORDS: Final = {
    "INTERFACE": "`interface`",
    "NODE": "`node`",
    "EDGE": "`edge`",
    "IMPLEMENTS": "`implements`",
    "CONSTRAINT": "a constraint such as `@key(…)`",
    "AT": "an annotation",
    "ARROW": "`->`",
    "DOTS": "`..`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "RSQB": "`]`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "QMARK": "`?`",
    "EQUAL": "`=`",
    "VALUE": "an enum value",
    END: "the end of the text",
}
_VALUES: Final = frozenset({"STRING", "TRUE", "FALSE", "NULL", "MINUS", "LSQB"})
_NUMBERS: Final = frozenset({"INTEGER", "FLOAT"})


def explain_token(grammar: SchemaGrammar, states: list[int], token: Token) -> Diagnostic:
    """Why this token does not fit here."""
    wanted = expected_terminals(grammar, states)
    expected = describe(wanted)
    span = Span(token.start, token.end)
    if token.type == END:
        message = "the text ends in the middle of a declaration"
        return Diagnostic(code="P008", message=message, span=span, expected=expected)
    return Diagnostic(
        code="P001",
        message=f"unexpected {_shown(token)}",
        span=span,
        expected=expected,
        suggestion=_suggestion(wanted, token),
    )


def explain_open_body(token: Token) -> Diagnostic:
    """The same for a declaration, or the end of the text, where a body is still open."""
    if token.type == END:
        message = "the text ends inside a body"
    else:
        message = f"`{token.text}` begins a declaration inside a body"
    return Diagnostic(
        code="P007",
        message=message,
        span=Span(token.start, token.end),
        expected=("a property", "a constraint such as `@key(…)`", "`}`"),
        suggestion="close the body before it with `}`",
    )


def repair_keyword(grammar: SchemaGrammar, states: list[int], token: Token) -> Token | None:
    """The keyword that a misspelled word stands for, so that the parser can continue with it."""
    if token.type not in {"NAME", "TYPE"}:
        return None
    if grammar.expects(states, "IMPLEMENTS"):
        meant = "implements" if token.text in _IMPLEMENTING else near(token.text, ["implements"])
    elif grammar.expects(states, "NODE") and not grammar.expects(states, "NAME"):
        words = [name.lower() for name in DECLARATIONS]
        meant = _DECLARING.get(token.text.lower()) or near(token.text, words)
    else:
        return None
    return Token(meant.upper(), token.text, token.start) if meant else None


def describe(wanted: frozenset[str]) -> tuple[str, ...]:
    """The terminals in words for a reader. Those that form one idea are combined."""
    words: list[str] = []
    names = wanted & {"NAME", "TYPE"}
    if names and "RESERVED" in wanted:
        words.append("a property")
    elif "ENUM" in wanted or "VECTOR" in wanted:
        words.append("a type")
        wanted -= {"LSQB", *names}
    elif "STRING" in wanted and "VALUE" not in wanted:
        words.append("a property or a value" if names else "a value")
        wanted -= _NUMBERS | _VALUES | {"DOTS"}
    elif names == {"NAME"}:
        words.append("an annotation name" if len(wanted) == 1 else "a name")
    elif names:
        words.append("a type name")
    if wanted & _NUMBERS:
        words.append("a number")
    words.extend(text for name, text in _WORDS.items() if name in wanted)
    return tuple(words)


def _shown(token: Token) -> str:
    if token.type == "STRING":
        return "string"
    if token.type == "RESERVED":
        return f"reserved word `{token.text}`"
    return f"`{shorten(token.text)}`"


def _suggestion(wanted: frozenset[str], token: Token) -> str | None:
    word = token.type in {"NAME", "TYPE"}
    if word and "IMPLEMENTS" in wanted:
        meant = "implements" if token.text in _IMPLEMENTING else near(token.text, ["implements"])
        return f"did you mean `{meant}`?" if meant else None
    if word and "NODE" in wanted and "NAME" not in wanted:
        words = [name.lower() for name in DECLARATIONS]
        meant = _DECLARING.get(token.text.lower()) or near(token.text, words)
        return f"did you mean `{meant}`?" if meant else None
    if wanted == {"COLON"}:
        return "write `name: Type` for a property, `edge Name: From -> To` for an edge"
    if wanted == {"ARROW"}:
        return "write the two ends of an edge as `From -> To`"
    if token.type == "AT" and "LBRACE" in wanted and "COMMA" in wanted:
        return "annotations of a type stand before `implements`"
    if token.type == "AT" and "CONSTRAINT" in wanted:
        return "annotations of a property stand before constraints such as `@key(…)`"
    if token.type == "CONSTRAINT" and "LBRACE" in wanted:
        return "constraints of a type stand in its body"
    if token.type == "EQUAL" and "QMARK" in wanted:
        return "a default is written `@default(value)`"
    if token.type == "LSQB":
        return "lists do not hold lists"
    return None
