"""Owns violations: what is wrong with one row, as a value, and how an offending value is shown."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

SHOWN_CHARACTERS = 80
_SHOWN_ITEMS = 4
_SHOWN_DIGITS = 40
_PRINTED_AS_THEY_ARE = (bool, float, complex, Decimal, timedelta, time)


class Violation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule that one row (or one column of the input) breaks. `message` is a whole sentence that
    also says what would be right. `value` is the offending value as `show_value` formats it. `row`
    is its position in the input, counted from 0."""

    type: str
    rule: str
    message: str
    id: str | None = None
    property: str | None = None
    value: str | None = None
    row: int | None = None


def show_text(text: str) -> str:
    """The text without quotes, shortened, with everything escaped that a terminal might
    interpret."""
    shown = text[:SHOWN_CHARACTERS]
    if not shown.isprintable():
        shown = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown
        )
    return shown if len(text) <= SHOWN_CHARACTERS else f"{shown}…"


def show_value(value: object) -> str:
    """The value on one short line. Only well-known types are printed: the `repr` of anything else
    is foreign code, which may fail, never end or lie."""
    match value:
        case None:
            return "null"
        case str():
            return f'"{show_text(str.__str__(value))}"'
        case np.generic() if value.dtype.kind in "biufM":
            return show_text(str(value))
        case bool() | float() | complex() | Decimal() | timedelta() | time():
            return show_text(repr(value)) if type(value) in _PRINTED_AS_THEY_ARE else _named(value)
        case int():
            return _show_int(int.__index__(value))
        case bytes() | bytearray():
            return show_text(repr(bytes(value[: SHOWN_CHARACTERS + 1])))
        case datetime() | date():
            return (
                show_text(value.isoformat()) if type(value) in (datetime, date) else _named(value)
            )
        case list() | tuple():
            return _show_items(value)
        case _:
            return _named(value)


def _show_int(value: int) -> str:
    if value.bit_length() > 3 * _SHOWN_DIGITS:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


def _show_items(value: list[Any] | tuple[Any, ...]) -> str:
    items = [_named(v) if isinstance(v, list | tuple) else show_value(v) for v in value[:4]]
    rest = [f"… {len(value)} items"] if len(value) > _SHOWN_ITEMS else []
    shown = ", ".join((*items, *rest))
    return f"[{shown if len(shown) <= SHOWN_CHARACTERS else f'… {len(value)} items'}]"


def _named(value: object) -> str:
    article = "an" if type(value).__name__[:1].lower() in "aeiou" else "a"
    return f"{article} {show_text(type(value).__name__)}"
