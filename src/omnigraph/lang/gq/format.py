"""Owns the one style of `.gq` text. Formatting moves white space and commas, never a comment.

A comment on the line of a token stays behind it; any other comment has a line of its own.
"""

from __future__ import annotations

from typing import Final

import msgspec

from omnigraph.lang.comments import INDENT, LINE_END, comment_text
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.gq.grammar import load_grammar
from omnigraph.lang.gq.layout import Plan, plan_layout
from omnigraph.lang.gq.parse import parse_queries
from omnigraph.lang.tokens import COMMENTS, END, Token

_NO_SPACE_AFTER: Final = frozenset({"LPAR", "LSQB", "DOT", "AT"})
_NO_SPACE_BEFORE: Final = frozenset({"RPAR", "RSQB", "COMMA", "COLON", "QMARK", "DOT"})
_CALLERS: Final = frozenset({"NAME", "TYPE"})
_BEFORE_VALUES: Final = frozenset({"where", "when", "then", "else"})
"""Words that call nothing, so a parenthesis after one stands apart."""


class Formatted(msgspec.Struct, frozen=True):
    """`text` is None exactly if the input does not parse."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...]


def format_queries(text: str) -> Formatted:
    parsed = parse_queries(text)
    if parsed.diagnostics:
        return Formatted(None, parsed.diagnostics)
    comments: list[Token] = []
    tokens = _read(text, comments)
    plan = plan_layout(parsed.file, tokens, comments)
    writer = _Writer(plan)
    end = 0
    for token in sorted([*tokens, *comments], key=lambda t: (t.start, t.type == END)):
        if token.start in plan.dropped:
            continue
        gap = text[end : token.start]
        breaks = len(LINE_END.findall(gap))
        if token.type in COMMENTS:
            writer.put_comment(token, breaks)
        elif token.type != END:
            writer.put(token, breaks)
        end = token.end
    laid_out = "".join(writer.parts).strip("\n")
    return Formatted(laid_out + "\n" if laid_out else "", ())


def _read(text: str, comments: list[Token]) -> list[Token]:
    return load_grammar().lexer.tokens(text, lambda _: None, comments)


class _Writer:
    """Writes tokens one after the other. `depth` is that of the current line."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.parts: list[str] = []
        self.depth = 0
        self.before: Token | None = None
        self.must_break = False
        self.after_comment = False

    def put(self, token: Token, breaks: int) -> None:
        plan = self.plan
        depth = plan.closings.get(token.start, plan.lines.get(token.start))
        if depth is not None:
            is_first = self._is_opened()
            self.depth = depth
            is_apart = token.start in plan.apart and not self.after_comment
            is_closing = token.start in plan.closings
            self._new_line(blank=(breaks > 1 or is_apart) and not is_first and not is_closing)
        elif self.must_break:
            self._new_line(extra=1)
        elif self.before is not None and self._is_spaced(token):
            self.parts.append(" ")
        self.parts.append(token.text)
        if token.start in plan.commas:
            self.parts.append(",")
        self.before, self.must_break, self.after_comment = token, False, False

    def put_comment(self, token: Token, breaks: int) -> None:
        """A comment on its own line gets the depth of what follows it or, in the middle of a line,
        one more."""
        if not self.parts:
            pass
        elif breaks == 0:
            self.parts.append(" ")
        else:
            follows = self._next_depth(token)
            if follows is None:
                self._new_line(extra=1)
            else:
                self.depth = follows
                is_first = self._is_opened() and not self.after_comment
                is_apart = not self.after_comment and self._follows_apart(token)
                self._new_line(blank=(breaks > 1 or is_apart) and not is_first)
        self.parts.append(comment_text(token, self.depth))
        self.must_break = token.type == "LINE_COMMENT" or breaks > 0 or self.must_break
        self.after_comment = self.after_comment or breaks > 0 or not self.parts
        self.before = self.before or token

    def _next_token(self, comment: Token) -> Token:
        """The token that will be written next."""
        index = self.plan.at(comment.end)
        while self.plan.starts[index] in self.plan.dropped:
            index += 1
        return self.plan.tokens[index]

    def _follows_apart(self, comment: Token) -> bool:
        return self._next_token(comment).start in self.plan.apart

    def _next_depth(self, comment: Token) -> int | None:
        """The depth of the line that begins after the comment, or None if none does."""
        following = self._next_token(comment)
        if following.start in self.plan.closings:
            return self.plan.closings[following.start] + 1
        return 0 if following.type == END else self.plan.lines.get(following.start)

    def _is_opened(self) -> bool:
        """Whether the line before ends with the brace of a block."""
        return self.before is None or self.before.type == "LBRACE"

    def _new_line(self, *, blank: bool = False, extra: int = 0) -> None:
        if self.parts:
            self.parts.append("\n\n" if blank else "\n")
        self.parts.append(INDENT * (self.depth + extra))

    def _is_spaced(self, token: Token) -> bool:
        assert self.before is not None
        left, right = self.before.type, token.type
        if self.parts[-1].endswith("*/"):
            return True
        if token.start in self.plan.glued:
            return False
        if left in _NO_SPACE_AFTER or right in _NO_SPACE_BEFORE:
            return False
        calls = left in _CALLERS and self.before.text not in _BEFORE_VALUES
        return not (right == "LPAR" and calls)
