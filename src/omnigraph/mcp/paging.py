"""Owns how much of an answer a model is given: so many rows, characters, and characters a cell.
What is cut says so, and where order is known a cursor goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from omnigraph.engine.query.result import Result
from omnigraph.errors import InvalidArgument
from omnigraph.mcp.desk import CELL, CHARACTERS, MOST_ROWS, ROWS
from omnigraph.wire.columns import columns_of, json_rows
from omnigraph.wire.cursors import PageCursor
from omnigraph.wire.values import json_text, plain

_UNORDERED = "There are more rows. Add `order { … }` to the query to page through them."
_CUT = f"Values longer than {CELL} characters are cut."


class RowPage(msgspec.Struct, frozen=True, kw_only=True):
    """`cursor` goes on with the next rows, if there are more."""

    columns: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    ref: str
    commit: str
    row_count: int
    truncated: bool
    cursor: str | None = None
    note: str | None = None


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """`cursor` goes on with the next items, if there are more."""

    items: list[dict[str, Any]]
    truncated: bool
    cursor: str | None = None
    note: str | None = None


def check_limit(limit: int | None) -> int:
    if limit is None:
        return ROWS
    if not 1 <= limit <= MOST_ROWS:
        raise InvalidArgument(f"limit is a number from 1 to {MOST_ROWS:,}, not {limit}.")
    return limit


def rows_of(result: Result, ref: str, of: str, offset: int, limit: int | None) -> RowPage:
    """The rows of a result from `offset` on, as many as fit."""
    sheet = Sheet(check_limit(limit), offset)
    batches = result.batches()
    try:
        sheet.fill(row for batch in batches for row in json_rows(batch))
    finally:
        result.cancel()
    commit = result.commit.id
    after = PageCursor(commit, of, offset + len(sheet.rows)).text
    return RowPage(
        columns=columns_of(result.schema),
        rows=sheet.rows,
        ref=ref,
        commit=commit,
        row_count=len(sheet.rows),
        truncated=sheet.more,
        cursor=after if sheet.more and result.ordered else None,
        note=_note(sheet, ordered=result.ordered),
    )


def list_of(
    items: Iterable[dict[str, Any]], commit: str, of: str, offset: int, limit: int | None
) -> Listed:
    """The same of items whose order is always the same."""
    sheet = Sheet(check_limit(limit), offset)
    sheet.fill(plain(item) for item in items)
    after = PageCursor(commit, of, offset + len(sheet.rows)).text
    return Listed(
        items=sheet.rows,
        truncated=sheet.more,
        cursor=after if sheet.more else None,
        note=_note(sheet, ordered=True),
    )


def _note(sheet: Sheet, *, ordered: bool) -> str | None:
    said = [_UNORDERED] if sheet.more and not ordered else []
    return " ".join([*said, *([_CUT] if sheet.cut else [])]) or None


class Sheet:
    """Takes what fits, and at least one row."""

    def __init__(self, most: int, offset: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self.more = False
        self.cut = False
        self._most = most
        self._skip = offset
        self._room = CHARACTERS

    def fill(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            if self._skip:
                self._skip -= 1
                continue
            short = dict(self._cells(row))
            self._room -= len(json_text(short)) + 1
            if len(self.rows) == self._most or (self._room < 0 and self.rows):
                self.more = True
                return
            self.rows.append(short)

    def _cells(self, row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in row.items():
            text = value if isinstance(value, str) else None
            if text is None and isinstance(value, list | dict):
                text = json_text(value)
            if text is None or len(text) <= CELL:
                yield name, value
            else:
                self.cut = True
                yield name, f"{text[: CELL - 30]}… ({len(text):,} characters)"
