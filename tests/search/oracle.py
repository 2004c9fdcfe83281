"""Search over plain rows, naively: what decision 40 says, in plain Python and double precision.

Written from the contract, without a look at the engine that it judges. Only the cutting of a text
into words is Lance's own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import lance
import numpy as np

K1: Final = 1.2
B: Final = 0.75
WINDOW: Final = 1000
"""So many places has a rank within `rrf`."""
Vector = Sequence[float] | np.ndarray[Any, Any]


STANDARD: Final = "standard"
"""The analysis of a property that names none; others are languages, with stems and stop words."""


@lru_cache(maxsize=100_000)
def placed_words(text: str, analysis: str = STANDARD) -> tuple[tuple[int, str], ...]:
    """The words of a text with their places; one that is left out leaves its place empty."""
    plain = analysis == STANDARD
    found = lance.tokenize(
        text,
        base_tokenizer="icu/split",
        language="English" if plain else analysis.capitalize(),
        stem=not plain,
        remove_stop_words=not plain,
    )
    return tuple((token.position, token.text) for token in found)


def words(text: str | None, analysis: str = STANDARD) -> list[str]:
    return [] if text is None else [word for _, word in placed_words(text, analysis)]


# What matches: true, false, or null when either side is.


def has_word(text: str | None, wanted: str | None, analysis: str = STANDARD) -> bool | None:
    """`search`: at least one of the words."""
    if text is None or wanted is None:
        return None
    return not set(words(text, analysis)).isdisjoint(words(wanted, analysis))


def has_phrase(text: str | None, wanted: str | None, analysis: str = STANDARD) -> bool | None:
    """`match_text`: the words side by side, in this order."""
    if text is None or wanted is None:
        return None
    phrase = placed_words(wanted, analysis)
    if not phrase:
        return False
    there = dict(placed_words(text, analysis))
    first = phrase[0][0]
    return any(
        all(there.get(start + place - first) == word for place, word in phrase) for start in there
    )


@lru_cache(maxsize=100_000)
def has_similar_word(
    text: str | None, wanted: str | None, edits: int | None = 2, analysis: str = STANDARD
) -> bool | None:
    """`fuzzy`: a word at most so many edits away from one of the words."""
    if text is None or wanted is None or edits is None:
        return None
    here, there = set(words(text, analysis)), set(words(wanted, analysis))
    return any(distance_of(a, b) <= edits for a in here for b in there)


@lru_cache(maxsize=100_000)
def distance_of(one: str, other: str) -> int:
    """Levenshtein's: letters inserted, deleted, replaced."""
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        here = [row]
        for column, against in enumerate(other, 1):
            replaced = above[column - 1] + (letter != against)
            here.append(min(above[column] + 1, here[-1] + 1, replaced))
        above = here
    return above[-1]


# Ranks.


@dataclass(frozen=True)
class Corpus:
    """What BM25 knows of all texts of a type together; those without a word are no documents."""

    documents: int
    holding: Mapping[str, int]
    length: float
    analysis: str = STANDARD

    @staticmethod
    def of(texts: Iterable[str | None], analysis: str = STANDARD) -> Corpus:
        cut = [found for text in texts if (found := words(text, analysis))]
        holding = Counter(word for found in cut for word in set(found))
        return Corpus(len(cut), holding, sum(map(len, cut)) / max(len(cut), 1), analysis)

    def score(self, text: str | None, wanted: str | None) -> float | None:
        """The BM25 score: 0 if the text holds none of the words, null without a text."""
        if text is None or wanted is None:
            return None
        found, asked = words(text, self.analysis), words(wanted, self.analysis)
        return sum(
            (self._weight(found, word) for word in dict.fromkeys(asked) if word in found),
            0.0,
        )

    def _weight(self, found: Sequence[str], word: str) -> float:
        holding, count = self.holding[word], found.count(word)
        rarity = math.log(1 + (self.documents - holding + 0.5) / (holding + 0.5))
        return rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * len(found) / self.length))


def cosine_distance(vector: Vector | None, wanted: Vector | None) -> float | None:
    """1 - cos, to 12 decimals; null where either is null, zero or not finite."""
    if vector is None or wanted is None:
        return None
    if not all(map(math.isfinite, [*vector, *wanted])):
        return None
    one, other = math.hypot(*vector), math.hypot(*wanted)
    if one == 0 or other == 0:
        return None
    cosine = math.fsum(a / one * (b / other) for a, b in zip(vector, wanted, strict=True))
    return round(1 - cosine, 12)


def places(best_first: Iterable[tuple[float | None, str]]) -> dict[str, int]:
    """Entities by the place that a rank gives them, counted from 0, ties by id: what has no value,
    or is beyond the window, has no place. Values are given so that the smaller is the better."""
    ranked = sorted((value, entity) for value, entity in set(best_first) if value is not None)
    return {entity: place for place, (_, entity) in enumerate(ranked[:WINDOW])}


def fused(ranks: Iterable[Mapping[str, int]], entity: str, k: int = 60) -> float:
    """`rrf` of an entity, from its places."""
    return sum(1 / (k + rank[entity]) for rank in ranks if entity in rank)


# Order.

TIE: Final = 2e-6
"""Scores that differ by less than this part of themselves, one after the other, are one score."""


def in_order(
    rows: Iterable[tuple[float | None, tuple[str, ...]]], *, descending: bool, tie: float = 0.0
) -> list[tuple[float | None, tuple[str, ...]]]:
    """Rows of (rank, ids): by rank, ties by ids ascending, those without a rank last."""
    rows = list(rows)
    ranked = [(value, ids) for value, ids in rows if value is not None]
    ranked.sort(key=lambda row: row[0], reverse=descending)
    groups: list[list[tuple[float | None, tuple[str, ...]]]] = []
    last: float | None = None
    for value, ids in ranked:
        if last is None or abs(last - value) > tie * max(abs(last), abs(value)):
            groups.append([])
        groups[-1].append((value, ids))
        last = value
    groups.append([row for row in rows if row[0] is None])
    return [row for group in groups for row in sorted(group, key=lambda row: row[1])]
