"""Owns what is searched in benchmarks: texts with the frequencies of a language, vectors in
clusters, a graph around them; and the right answers, found by looking at everything."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TEXTS, VECTORS, NARROW, LONG, WIDE = 200_000, 100_000, 128, 20_000, 1024
AUTHORS, HUBS, GROUPS, CANDIDATES = 40_000, 20, 10, 1_000
_VOCABULARY = 30_000
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
SCHEMA = """
node Paper { slug: String @key  text: String %s }
node Author { name: String @key }
edge Wrote: Author -> Paper
node Item { slug: String @key  text: String @index  v: Vector(128) @index }
node Wide { slug: String @key  v: Vector(1024) @index }
node Hub { name: String @key }
node Group { name: String @key }
edge Owns: Hub -> Group
edge Holds: Group -> Item
"""


def _word(number: int) -> str:
    """Syllables as digits: every number has a word of its own."""
    letters = ""
    while number or not letters:
        number, at = divmod(number, len(_CONSONANTS) * len(_VOWELS))
        letters += _CONSONANTS[at // len(_VOWELS)] + _VOWELS[at % len(_VOWELS)]
    return letters


WORDS = [_word(number) for number in range(_VOCABULARY)]


@dataclass(frozen=True)
class Texts:
    """`tokens` are numbers of words, one text after the other; text n has those from
    `starts[n]` on."""

    slugs: list[str]
    texts: list[str]
    tokens: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]

    @property
    def lengths(self) -> np.ndarray[Any, Any]:
        return np.diff(self.starts)

    @property
    def places(self) -> np.ndarray[Any, Any]:
        """Of each token the number of its text."""
        return np.repeat(np.arange(len(self.texts)), self.lengths)

    def scores(self, words: list[str]) -> np.ndarray[Any, Any]:
        """BM25 of every text."""
        count, lengths = len(self.texts), self.lengths
        total = np.zeros(count)
        for word in words:
            held = np.bincount(self.places[self.tokens == WORDS.index(word)], minlength=count)
            known = np.count_nonzero(held)
            rarity = np.log(1 + (count - known + 0.5) / (known + 0.5))
            total += rarity * held * 2.2 / (held + 1.2 * (0.25 + 0.75 * lengths / lengths.mean()))
        return total

    def with_phrase(self, first: str, second: str) -> np.ndarray[Any, Any]:
        """Which texts hold two words side by side."""
        same = self.places[:-1] == self.places[1:]
        found = (self.tokens[:-1] == WORDS.index(first)) & (self.tokens[1:] == WORDS.index(second))
        held = np.zeros(len(self.texts), bool)
        held[self.places[:-1][same & found]] = True
        return held


@dataclass(frozen=True)
class Vectors:
    slugs: list[str]
    values: np.ndarray[Any, Any]

    def nearest(
        self, vector: np.ndarray[Any, Any], among: np.ndarray[Any, Any] | None = None
    ) -> list[tuple[str, float]]:
        """The ten nearest and how far they are, in double precision."""
        rows = np.arange(len(self.slugs)) if among is None else among
        values = self.values[rows].astype(np.float64)
        cosines = values @ vector / np.linalg.norm(values, axis=1) / np.linalg.norm(vector)
        best = np.argsort(-cosines, kind="stable")[:10]
        return [(self.slugs[rows[n]], float(1 - cosines[n])) for n in best]


@dataclass(frozen=True)
class Data:
    papers: Texts
    items: Texts
    narrow: Vectors
    wide: Vectors
    wrote: np.ndarray[Any, Any]
    """Pairs of author and paper, by number."""
    held: np.ndarray[Any, Any]
    """Pairs of group and item, by number; groups of hub 0 are the first ten."""


def draw() -> Data:
    random = np.random.default_rng(19)
    return Data(
        _texts(random, TEXTS, "p"),
        _texts(random, VECTORS, "i"),
        _vectors(random, VECTORS, NARROW, "i"),
        _vectors(random, LONG, WIDE, "w"),
        np.unique(
            np.stack([random.integers(0, AUTHORS, 600_000), random.integers(0, TEXTS, 600_000)], 1),
            axis=0,
        ),
        np.stack(
            [
                np.repeat(np.arange(HUBS * GROUPS), CANDIDATES // GROUPS),
                random.permutation(VECTORS)[: HUBS * CANDIDATES],
            ],
            1,
        ),
    )


def texts(count: int) -> list[str]:
    """Some texts alone."""
    return _texts(np.random.default_rng(19), count, "t").texts


def _texts(random: np.random.Generator, count: int, letter: str) -> Texts:
    lengths = random.integers(6, 19, count)
    chances = 1 / (np.arange(_VOCABULARY) + 3.0)
    tokens = random.choice(_VOCABULARY, int(lengths.sum()), p=chances / chances.sum())
    starts = np.concatenate([[0], np.cumsum(lengths)])
    words = np.array(WORDS, object)[tokens]
    texts = [" ".join(words[a:b]) for a, b in pairwise(starts)]
    return Texts([f"{letter}{n:06d}" for n in range(count)], texts, tokens, starts)


def _vectors(random: np.random.Generator, count: int, size: int, letter: str) -> Vectors:
    centers = random.standard_normal((200, size))
    values = centers[random.integers(0, 200, count)] + 0.6 * random.standard_normal((count, size))
    return Vectors([f"{letter}{n:06d}" for n in range(count)], values.astype(np.float32))


def write(data: Data, directory: Path) -> dict[str, Path]:
    """As Parquet, one file a type."""
    directory.mkdir()

    def listed(vectors: Vectors) -> pa.Array:
        flat = pa.array(vectors.values.ravel())
        return pa.FixedSizeListArray.from_arrays(flat, vectors.values.shape[1])

    def named(letter: str, count: int) -> list[str]:
        return [f"{letter}{n:05d}" for n in range(count)]

    authors, groups = named("a", AUTHORS), named("g", HUBS * GROUPS)
    hubs = named("h", HUBS)
    tables = {
        "Paper": {"slug": data.papers.slugs, "text": data.papers.texts},
        "Author": {"name": authors},
        "Wrote": {
            "from": [authors[n] for n in data.wrote[:, 0]],
            "to": [data.papers.slugs[n] for n in data.wrote[:, 1]],
        },
        "Item": {
            "slug": data.items.slugs,
            "text": data.items.texts,
            "v": listed(data.narrow),
        },
        "Wide": {"slug": data.wide.slugs, "v": listed(data.wide)},
        "Hub": {"name": hubs},
        "Group": {"name": groups},
        "Owns": {"from": [hubs[n // GROUPS] for n in range(len(groups))], "to": groups},
        "Holds": {
            "from": [groups[n] for n in data.held[:, 0]],
            "to": [data.items.slugs[n] for n in data.held[:, 1]],
        },
    }
    places = {}
    for name, columns in tables.items():
        places[name] = directory / f"{name}.parquet"
        pq.write_table(pa.table(columns), places[name])
    return places
