"""Owns the one style of `.pg` text. Formatting moves white space and drops commas, never a comment.

The text is split into statements (the head of a declaration, a property, a constraint, a closing
brace), each of which gets its own line. A comment on the line of a statement stays there; any other
comes before the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from omnigraph.lang.comments import INDENT, LINE_END, comment_text
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.pg.grammar import load_grammar
from omnigraph.lang.pg.lexer import DECLARATIONS
from omnigraph.lang.pg.parse import parse_schema
from omnigraph.lang.pg.tree import SchemaTree, Wreck
from omnigraph.lang.tokens import END, Token

WIDTH: Final = 100
_NO_SPACE_AFTER: Final = frozenset({"LPAR", "LSQB", "AT", "CONSTRAINT", "MINUS", "DOTS", "EQUAL"})
_NO_SPACE_BEFORE: Final = frozenset(
    {"LPAR", "RPAR", "RSQB", "COMMA", "COLON", "QMARK", "DOTS", "EQUAL"}
)
_KEYWORDS: Final = frozenset({"interface", "node", "edge", "implements"})
_COMMENTS: Final = frozenset({"LINE_COMMENT", "BLOCK_COMMENT"})


class Formatted(msgspec.Struct, frozen=True):
    """`text` is None exactly if the input does not parse."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...]


class _Element(msgspec.Struct, frozen=True, gc=False):
    """A token or comment, and the number of line breaks before it."""

    token: Token
    breaks: int
    is_comment: bool


class _Statement(msgspec.Struct):
    """`leading` comments have their own lines; `trailing` ones stand behind the statement."""

    depth: int
    leading: list[_Element] = []
    elements: list[_Element] = []
    trailing: list[_Element] = []

    @property
    def kind(self) -> str:
        return self.elements[0].token.type

    @property
    def opens(self) -> bool:
        return self.elements[-1].token.type == "LBRACE"


def format_schema(text: str) -> Formatted:
    parsed = parse_schema(text)
    if parsed.diagnostics:
        return Formatted(None, parsed.diagnostics)
    elements = _read_elements(text)
    statements = _split(elements, _starts(parsed.tree))
    laid_out = "".join(_lay_out(statements)).strip("\n")
    return Formatted(laid_out + "\n" if laid_out else "", ())


def _starts(tree: SchemaTree) -> frozenset[int]:
    """Where declarations, properties and constraints begin."""
    starts: set[int] = set()
    for declaration in tree.declarations:
        starts.add(declaration.span.start)
        if not isinstance(declaration, Wreck) and declaration.body:
            starts.update(item.span.start for item in declaration.body.items)
    return frozenset(starts)


def _read_elements(text: str) -> Iterator[_Element]:
    """Tokens and comments in order, without the commas that may follow a property. A comma that
    keeps the word before it from being a keyword stays."""
    comments: list[Token] = []
    tokens = list(load_grammar().lexer.tokens(text, lambda _: None, comments=comments))
    end, braces, others = 0, 0, 0
    before = ""
    for token in sorted([*tokens, *comments], key=_order):
        if token.type == "COMMA" and braces and not others and before not in _KEYWORDS:
            continue
        before = before if token.type in _COMMENTS else token.text
        braces += (token.type == "LBRACE") - (token.type == "RBRACE")
        others += (token.type in {"LPAR", "LSQB"}) - (token.type in {"RPAR", "RSQB"})
        gap = text[end : token.start]
        breaks = 0 if gap in {"", " "} else len(LINE_END.findall(gap))
        yield _Element(token, breaks, token.type in _COMMENTS)
        end = token.end


def _order(token: Token) -> tuple[int, bool]:
    return token.start, token.type == END


def _split(elements: Iterator[_Element], starts: frozenset[int]) -> list[_Statement]:
    """Comments after the last token of a statement trail it up to the first line break; the others
    lead the next statement. The end of the text is a statement too."""
    statements: list[_Statement] = []
    pending: list[_Element] = []
    depth = 0
    for element in elements:
        kind = element.token.type
        if element.is_comment:
            pending.append(element)
            continue
        new = element.token.start in starts and kind != "LBRACE"
        if new or kind in {"RBRACE", END}:
            _settle(statements, pending)
            depth -= kind == "RBRACE"
            statements.append(_Statement(depth, leading=pending))
            pending = []
        if pending:
            statements[-1].elements += pending
            pending = []
        statements[-1].elements.append(element)
        depth += kind == "LBRACE"
    return statements


def _settle(statements: list[_Statement], pending: list[_Element]) -> None:
    """Gives comments on its last line to the statement before."""
    while statements and pending and pending[0].breaks == 0:
        statements[-1].trailing.append(pending.pop(0))


def _lay_out(statements: list[_Statement]) -> Iterator[str]:
    before: _Statement | None = None
    for statement in statements:
        if _closes_empty(before, statement):
            yield "}"
        else:
            if before is not None:
                yield "\n"
            yield from _lines_before(before, statement)
            if statement.kind != END:
                yield from _fill(statement)
        for comment in statement.trailing:
            yield " " + comment_text(comment.token, statement.depth)
        before = statement


def _closes_empty(before: _Statement | None, statement: _Statement) -> bool:
    if before is None or not before.opens or statement.kind != "RBRACE":
        return False
    return not before.trailing and not statement.leading


def _lines_before(before: _Statement | None, statement: _Statement) -> Iterator[str]:
    """Blank lines and comments before a statement, each comment on its own line."""
    depth = statement.depth + (statement.kind == "RBRACE")
    indent = INDENT * depth
    wants_blank = _separates(before, statement)
    first = True
    for element in [*statement.leading, statement.elements[0]]:
        if element.is_comment and not first and element.breaks == 0:
            yield " " + comment_text(element.token, depth)
            continue
        if not first:
            yield "\n"
        blank = element.breaks > 1 or (first and wants_blank)
        if first and (before is None or before.opens):
            blank = False
        if element.token.type in {"RBRACE", END}:
            blank = False
        if blank:
            yield "\n"
        if element.is_comment:
            yield indent + comment_text(element.token, depth)
        first = False


def _separates(before: _Statement | None, statement: _Statement) -> bool:
    """Declarations are separated by blank lines, except that edges without bodies may follow each
    other."""
    if before is None or statement.kind not in DECLARATIONS:
        return False
    short = before.kind == "EDGE" and statement.kind == "EDGE"
    return not (short and not before.opens and not statement.opens)


class _Fill:
    """One statement while its lines are filled. It has `ended` after a comment that no token
    follows."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.parts: list[str] = [INDENT * depth]
        self.column = len(self.parts[0])
        self.fresh = True
        self.ended = False

    def put(self, text: str, *, space: bool) -> None:
        if space and not self.fresh:
            text = " " + text
        self.parts.append(text)
        self.fresh = False
        _, ended, rest = text.rpartition("\n")
        self.column = len(rest) if ended else self.column + len(text)

    def new_line(self) -> None:
        self.ended = False
        if not self.fresh:
            indent = INDENT * (self.depth + 1)
            self.parts.append("\n" + indent)
            self.column, self.fresh = len(indent), True


def _fill(statement: _Statement) -> list[str]:
    """The tokens of a statement, on one line if they fit, otherwise broken before annotations and
    after commas."""
    fill = _Fill(statement.depth)
    for chunk in _chunks(statement.elements):
        width = sum(len(e.token.text) + _spaced(b, e) for b, e in chunk if not e.is_comment)
        if fill.column + width > WIDTH:
            fill.new_line()
        for before, element in chunk:
            # A comment stays on the line of what stands before it, and only there: that is how
            # the next reader tells whose comment it is.
            if element.breaks if element.is_comment else fill.ended:
                fill.new_line()
            if not element.is_comment:
                fill.put(element.token.text, space=_spaced(before, element))
                continue
            fill.put(comment_text(element.token, statement.depth + 1), space=True)
            fill.ended |= element.breaks > 0 or element.token.type == "LINE_COMMENT"
    return ["".join(fill.parts).rstrip(" ")]


_Pair = tuple[_Element | None, _Element]


def _chunks(elements: list[_Element]) -> Iterator[list[_Pair]]:
    """The elements that stay together on a line: each with the one before it."""
    chunk: list[_Pair] = []
    before: _Element | None = None
    after_comma = False
    for element in elements:
        if not element.is_comment:
            if chunk and (after_comma or element.token.type in {"AT", "CONSTRAINT"}):
                yield chunk
                chunk = []
            after_comma = element.token.type == "COMMA"
        chunk.append((before, element))
        before = element
    yield chunk


def _spaced(before: _Element | None, element: _Element) -> bool:
    if before is None or before.is_comment:
        return before is not None
    left, right = before.token.type, element.token.type
    if left == "COMMA":
        return True
    return left not in _NO_SPACE_AFTER and right not in _NO_SPACE_BEFORE
