"""Owns markup: every text that is shown is escaped here, long ones are cut, and all views look
alike. Styles stand at the elements, because some places that show notebooks drop style sheets."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

LONGEST = 200
"""Characters of one value."""
_OF_ENTITY = 60
_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top;white-space:pre-wrap"
_FAINT = "opacity:.6"


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def faint(text: object) -> Markup:
    return Markup(f'<span style="{_FAINT}">{escaped(text)}</span>')


def coloured(colour: str, text: object) -> Markup:
    return Markup(f'<span style="color:{colour}">{escaped(text)}</span>')


def value_text(value: Any) -> str:
    """A value in one text: objects and lists as JSON, long ones cut."""
    match value:
        case str():
            text = value
        case bytes() | bytearray() | memoryview():
            text = f"{len(value):,} bytes"
        case dict() | list() | tuple():
            text = json.dumps(value, ensure_ascii=False, default=str)
        case _:
            text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def cell(value: Any) -> Markup:
    if isinstance(value, Markup):
        return value
    if isinstance(value, dict) and isinstance(value.get("@id"), str):
        return _entity(value)
    return faint("null") if value is None else escaped(value_text(value))


def _entity(value: dict[str, Any]) -> Markup:
    """Its id, and the beginning of the rest."""
    rest = ", ".join(
        f"{name}: {value_text(held)}"
        for name, held in value.items()
        if name != "@id" and held is not None and held != value["@id"]
    )
    shown = rest if len(rest) <= _OF_ENTITY else f"{rest[: _OF_ENTITY - 1]}…"
    return Markup(f"{escaped(value_text(value['@id']))} {faint(shown)}")


def table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> Markup:
    head = "".join(f'<th style="{_CELL}">{escaped(name)}</th>' for name in heads)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return Markup(
        '<table style="border-collapse:collapse">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cells(row: Iterable[Any]) -> str:
    return "".join(f'<td style="{_CELL}">{cell(value)}</td>' for value in row)


def line(*parts: object) -> Markup:
    """Parts next to each other."""
    return Markup(f'<p style="margin:4px 0">{"".join(escaped(part) for part in parts)}</p>')


def view(*parts: Markup) -> str:
    """What a notebook is given."""
    return f'<div class="omnigraph" style="overflow-x:auto">{"".join(parts)}</div>'


def counted(number: int, noun: str, total: int | None = None) -> str:
    """`20 of 1,234 rows`."""
    of = f"{number:,} of " if total is not None and total != number else ""
    shown = number if total is None else total
    plural = noun if shown == 1 else f"{noun}s"
    return f"{of}{shown:,} {plural}"
