"""Owns searching the words of a column through Lance: how a text is split, what can be asked, and
which rows match.

Every question carries an allowlist of row addresses. Without one, entries of deleted rows take the
places of live rows, and some kinds of questions return them (`search_facts`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.model.analysis import Analysis
from omnigraph.model.indexes import index_name
from omnigraph.store.damaged_files import reading
from omnigraph.store.lance_errors import explained
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

TEXT: Final = "text"
"""The one column of a scratch index."""
_SCRATCH: Final = "scratch"
LONGEST_FUZZY: Final = 32
"""The length of a word above which Lance may fail to find similar words."""
_INVERTED: Final = "InvertedIndexDetails"
_EXPANSIONS: Final = 100_000


@dataclass(frozen=True)
class AnyWord:
    """A text that holds at least one of the words; its score is BM25."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Phrase:
    """A text that contains the words next to each other. `text` is what they were split from."""

    text: str


@dataclass(frozen=True)
class Fuzzy:
    """A text with a word that is at most this many edits away from one of the words."""

    words: tuple[str, ...]
    edits: int


TextQuery = AnyWord | Phrase | Fuzzy


@dataclass(frozen=True)
class Hits:
    """Addresses and scores, in no particular order."""

    addresses: np.ndarray
    scores: np.ndarray

    @staticmethod
    def none() -> Hits:
        return Hits(np.array([], np.uint64), np.array([], np.float32))


@dataclass(frozen=True)
class Coverage:
    """Which fragments of a table version an index covers, and which it does not."""

    indexed: tuple[int, ...]
    tail: tuple[int, ...]


def cut(text: str, analysis: Analysis) -> list[str]:
    """The words of a text, in order."""
    from lance import tokenize

    return [token.text for token in tokenize(text, **dict(analysis.options))]


@lru_cache(maxsize=1024)
def distinct_words(text: str, analysis: Analysis) -> tuple[str, ...]:
    """The words of a question, each once: Lance counts a repeated word twice in one kind of
    question and once in another. If the stem of a word has another stem, the word itself is
    kept."""
    found: dict[str, str] = {}
    for chunk in text.split():
        for word in cut(chunk, analysis):
            if word not in found:
                found[word] = word if cut(word, analysis) == [word] else chunk
    return tuple(dict.fromkeys(found.values()))


def coverage(table: Table, column: str, analysis: Analysis) -> Coverage | None:
    """What an index of this analysis covers. None means that there is none, or that the column also
    has one of another analysis, and it is not known which of them Lance would use."""
    segments = [s for s in table.segments if column in s.columns and s.kind.endswith(_INVERTED)]
    name = index_name(column, "INVERTED", analysis.name)
    if not segments or any(segment.name != name for segment in segments):
        return None
    covered = frozenset[int]().union(*(segment.fragments for segment in segments))
    live = sorted(table.marks)
    return Coverage(
        tuple(n for n in live if n in covered), tuple(n for n in live if n not in covered)
    )


def allow_fragments(fragments: Iterable[int]) -> bytes:
    """An allowlist of whole fragments: 8 bytes each, whatever they contain."""
    numbers = sorted(fragments)
    return struct.pack("<I", len(numbers)) + b"".join(struct.pack("<II", n, 0) for n in numbers)


def allow_addresses(addresses: np.ndarray) -> bytes:
    from lance.dataset import serialize_row_addrs

    allowed: bytes = serialize_row_addrs(addresses.tolist())
    return allowed


def find_texts(
    table: Table,
    column: str,
    query: TextQuery,
    allowed: bytes,
    ledger: Ledger,
    *,
    limit: int | None = None,
    has_tail: bool = False,
) -> Hits:
    """The matching rows among the allowed ones, or the best `limit` of them. Only an index finds
    fuzzy words, so rows without one are not found by these."""
    if limit == 0:
        return Hits.none()  # Lance panics
    options: dict[str, Any] = {"row_addr_allowlist": allowed}
    if isinstance(query, Fuzzy):
        options["fast_search"] = True
    with reading(table):
        rows = table.handle.scanner(
            columns=["_rowid", "_score"],
            full_text_query=_question(query, column, has_tail=has_tail),
            limit=limit,
            **options,
        ).to_table()
    table.book(ledger, "search")
    return Hits(rows["_rowid"].to_numpy(), rows["_score"].to_numpy())


def _question(query: TextQuery, column: str, *, has_tail: bool) -> Any:
    from lance.query import CombinedFieldsQuery, MatchQuery, PhraseQuery

    match query:
        case AnyWord(words=words):
            # With rows outside the index, only this one scores all rows alike; without them, it
            # visits every match.
            if has_tail:
                return CombinedFieldsQuery(" ".join(words), [column])
            return MatchQuery(" ".join(words), column)
        case Phrase(text=text):
            return PhraseQuery(text, column)
        case Fuzzy(words=words, edits=edits):
            text = " ".join(words)
            return MatchQuery(text, column, fuzziness=edits, max_expansions=_EXPANSIONS)
        case _:
            assert_never(query)


def build_scratch(texts: pa.Array, analysis: Analysis) -> Table:
    """An index in memory for texts that no stored index covers. It splits and scores them in the
    same way. The n-th text has the address n. Nothing of it reaches a graph."""
    import lance

    with explained(_SCRATCH):
        handle = lance.write_dataset(
            pa.table({TEXT: texts}),
            f"memory://{_SCRATCH}",
            max_rows_per_file=1 << 30,
            session=lance.Session(),
        )
        handle.create_scalar_index(TEXT, "INVERTED", with_position=True, **dict(analysis.options))
    return Table(handle, _SCRATCH, None)
