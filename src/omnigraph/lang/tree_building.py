"""Owns what the builders of both syntax trees do with the children of a rule."""

from __future__ import annotations

from typing import Any, TypeVar

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.tokens import Token

T = TypeVar("T")
Children = list[Any]


def all_of(children: Children, kind: type[T]) -> tuple[T, ...]:
    return tuple([child for child in children if type(child) is kind])


def span_of(children: Children) -> Span:
    """From the first child to the last one that covers text."""
    first, last = children[0], children[-1]
    start = first.start if type(first) is Token else first.span.start
    return Span(start, last.end if type(last) is Token else last.span.end)


def item_span(children: Children) -> Span:
    """Like `span_of`, but the comma that may follow an item is not part of it."""
    last = children[-1]
    return span_of(children[:-1] if type(last) is Token and last.type == "COMMA" else children)
