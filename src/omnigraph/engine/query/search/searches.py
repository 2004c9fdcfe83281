"""Owns the values of search functions on the rows of a query: whether a text matches, scores,
distances, places, passages. Results are kept while the query runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.query.search.texts import Ranked, Texts
from omnigraph.engine.query.search.vectors import Vectors, as_matrix
from omnigraph.errors import InvalidParameters
from omnigraph.lang.gq.checked import (
    Bm25,
    Expression,
    Highlight,
    Nearest,
    PropertyValue,
    Rrf,
    TextSearch,
)
from omnigraph.model.analysis import Analysis, analysis_of
from omnigraph.model.catalog import Property
from omnigraph.plan.passages import passage
from omnigraph.plan.values import evaluate
from omnigraph.plan.values.kinds import Value, broadcast
from omnigraph.store.text_search import (
    LONGEST_FUZZY,
    AnyWord,
    Fuzzy,
    Phrase,
    TextQuery,
    cut,
    distinct_words,
)

if TYPE_CHECKING:
    from omnigraph.engine.query.context import FrameValues, QueryContext
    from omnigraph.engine.query.rows import TypeRows

EmbedText = Callable[[Property, str], tuple[float, ...]]
"""Turns a text into a vector, by the model of a property."""

_EDITS: Final = 2


class Searches:
    """The searches of one run. `places` is filled before the rows of an `rrf` are made
    (`ranking`)."""

    def __init__(self, run: QueryContext, embed: EmbedText) -> None:
        self._run = run
        self._embed = embed
        self._texts: dict[tuple[str, str], Texts] = {}
        self._vectors: dict[tuple[str, str], Vectors] = {}
        self._found: dict[tuple[str, str, TextQuery], Ranked] = {}
        self._matching: dict[tuple[str, str, TextQuery], np.ndarray] = {}
        self._embedded: dict[tuple[str, str], np.ndarray] = {}
        self.places: dict[Nearest | Bm25, tuple[np.ndarray, np.ndarray]] = {}
        """For each rank of an `rrf`: numbers of entities, ascending, and the place of each."""

    # Where to look

    def texts(self, rows: TypeRows, prop: Property) -> Texts:
        key = (rows.kind.table_key, prop.name)
        found = self._texts.get(key)
        if found is None:
            found = Texts(rows, prop.name, analysis_of(prop), self._run.guard)
            self._texts[key] = found
        return found

    def vectors(self, rows: TypeRows, prop: Property) -> Vectors:
        key = (rows.kind.table_key, prop.name)
        found = self._vectors.get(key)
        if found is None:
            found = self._vectors[key] = Vectors(rows, prop.name, self._run.guard)
        return found

    @property
    def used(self) -> dict[str, str]:
        """What was searched, and how, for `explain`."""
        searched = [
            *((key, texts.how) for key, texts in self._texts.items()),
            *((key, vectors.how) for key, vectors in self._vectors.items()),
        ]
        return {f"{kind.partition(':')[2]}.{name}": how for (kind, name), how in searched}

    def matching(self, rows: TypeRows, prop: Property, query: TextQuery) -> np.ndarray:
        """Positions of all rows of a type that answer. Where nothing is pending their scores come
        with them, and are kept."""
        key = (rows.kind.table_key, prop.name, query)
        if rows.is_plain or key in self._found:
            return self.answers(rows, prop, query).positions
        found = self._matching.get(key)
        if found is None:
            found = self._matching[key] = self.texts(rows, prop).matching(query)
            self._run.guard.hold(found.nbytes)
        return found

    def answers(self, rows: TypeRows, prop: Property, query: TextQuery) -> Ranked:
        """All rows of a type that match."""
        key = (rows.kind.table_key, prop.name, query)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self.texts(rows, prop).all(query)
            self._run.guard.hold(found.nbytes)
        return found

    def keep(self, rows: TypeRows, prop: Property, query: TextQuery, best: Ranked) -> None:
        """Restricts further searches to these rows."""
        self._run.guard.hold(best.nbytes)
        self._found[rows.kind.table_key, prop.name, query] = best

    # Filters

    def matches(self, value: TextSearch, leaves: FrameValues) -> Value:
        """Whether the text of each row matches; null if there is no text or no question."""
        found, unknown = self._matched(value, leaves)
        unknown |= self._has_no_text(value.target, leaves, ~found)
        return pa.array(found, mask=unknown) if unknown.any() else pa.array(found)

    def passing(self, value: TextSearch, leaves: FrameValues) -> np.ndarray:
        """The same, with null taken as false. No text is read."""
        found, unknown = self._matched(value, leaves)
        passed: np.ndarray = found & ~unknown
        return passed

    def _matched(self, value: TextSearch, leaves: FrameValues) -> tuple[np.ndarray, np.ndarray]:
        found = np.zeros(leaves.rows, bool)
        unknown = np.zeros(leaves.rows, bool)
        edits = None if value.edits is None else evaluate(value.edits, leaves)
        for words, places in _alike(evaluate(value.words, leaves), leaves.rows):
            most = _whole(edits, places, leaves.rows)
            if words is None or (edits is not None and most is None):
                unknown[places] = True
                continue
            for prop, rows, here, positions in self._split(value.target, leaves, places):
                query = text_query(value.function, words, most, analysis_of(prop))
                if query is not None:
                    found[here] = np.isin(positions, self.matching(rows, prop, query))
        return found, unknown

    def positions(
        self, value: TextSearch, words: str | None, edits: int | None, rows: TypeRows, place: int
    ) -> np.ndarray:
        """The rows of one type that match, ascending."""
        prop = value.target.properties[place]
        if words is None or (value.edits is not None and edits is None):
            return np.array([], np.int64)
        query = text_query(value.function, words, edits, analysis_of(prop))
        if query is None:
            return np.array([], np.int64)
        return self.matching(rows, prop, query)

    # Ranks

    def scores(self, value: Bm25, leaves: FrameValues) -> Value:
        scores = np.zeros(leaves.rows)
        unknown = np.zeros(leaves.rows, bool)
        for words, places in _alike(evaluate(value.words, leaves), leaves.rows):
            if words is None:
                unknown[places] = True
                continue
            for prop, rows, here, positions in self._split(value.target, leaves, places):
                query = text_query("search", words, None, analysis_of(prop))
                if query is not None:
                    scores[here] = self.answers(rows, prop, query).scores_at(positions)
        unknown |= self._has_no_text(value.target, leaves, scores == 0)
        return pa.array(scores, mask=unknown)

    def distances(self, value: Nearest, leaves: FrameValues) -> Value:
        result = np.full(leaves.rows, np.nan)
        query = evaluate(value.query, leaves)
        everywhere = np.arange(leaves.rows)
        for prop, rows, here, positions in self._split(value.target, leaves, everywhere):
            vectors = self.vectors(rows, prop)
            if isinstance(query, pa.Array | pa.ChunkedArray):
                result[here] = self._to_each(vectors, prop, query.take(pa.array(here)), positions)
            else:
                vector = self.vector(query.as_py(), prop)
                if vector is not None:
                    result[here] = vectors.distances(positions, vector)
        return pa.array(result, mask=np.isnan(result))

    def _to_each(
        self, vectors: Vectors, prop: Property, query: pa.Array, positions: np.ndarray
    ) -> np.ndarray:
        if pa.types.is_fixed_size_list(query.type):
            return vectors.paired(positions, as_matrix(query, query.type.list_size))
        result = np.full(len(positions), np.nan)
        for given, places in _alike(query, len(positions)):
            vector = self.vector(given, prop)
            if vector is not None:
                result[places] = vectors.distances(positions[places], vector)
        return result

    def vector(self, given: Any, prop: Property) -> np.ndarray | None:
        """The vector to compare with: a list of numbers, or a text that the property's model
        embeds. None means that it has no direction, so nothing has a distance to it."""
        if given is None:
            return None
        if isinstance(given, str):
            key = (prop.id, given)
            found = self._embedded.get(key)
            if found is None:
                if not given.strip():
                    return None
                found = np.array(self._embed(prop, given), np.float64)
                self._embedded[key] = found
            return found
        vector = np.array([np.nan if item is None else item for item in given], np.float64)
        dimension = prop.type.dimension  # type: ignore[union-attr]
        if len(vector) != dimension:
            raise InvalidParameters(
                f"The vector to look for has {len(vector)} numbers, and `{prop.name}` takes "
                f"{dimension}."
            )
        with np.errstate(all="ignore"):
            length = np.sqrt((vector * vector).sum())
        return vector if np.isfinite(length) and length > 0 else None

    def fused(self, value: Rrf, leaves: FrameValues) -> Value:
        k = evaluate(value.k, leaves)
        constants = np.array(broadcast(k, leaves.rows).to_pylist(), np.float64)
        for given in constants[~np.isnan(constants)]:
            if given <= 0:
                raise InvalidParameters(f"`k` of `rrf` is a number above 0, and this is {given:g}.")
        total = np.zeros(leaves.rows)
        for rank in value.ranks:
            numbers, places = self.places[rank]
            asked = leaves.frame.columns[rank.target.variable]
            if not len(numbers):
                continue
            where = np.minimum(np.searchsorted(numbers, asked), len(numbers) - 1)
            there = numbers[where] == asked
            total[there] += 1 / (constants[there] + places[where[there]])
        return pa.array(total, mask=np.isnan(constants))

    # Passages

    def passages(self, value: Highlight, leaves: FrameValues) -> Value:
        texts = broadcast(leaves.leaf(value.target), leaves.rows)
        result: list[str | None] = [None] * leaves.rows
        for words, places in _alike(evaluate(value.words, leaves), leaves.rows):
            if words is None:
                continue
            for prop, _, here, _ in self._split(value.target, leaves, places):
                analysis = analysis_of(prop)
                wanted = frozenset(cut(words, analysis))
                for place in here.tolist():
                    text = texts[place].as_py()
                    if text is not None:
                        result[place] = passage(text, wanted, lambda t: cut(t, analysis))  # noqa: B023
        return pa.array(result, pa.string())

    # Rows

    def _split(
        self, target: PropertyValue, leaves: FrameValues, places: np.ndarray
    ) -> Iterator[tuple[Property, TypeRows, np.ndarray, np.ndarray]]:
        """For each type among some rows of a frame: the property, the rows of the type, their
        indexes in the frame, and their positions."""
        numbers = leaves.frame.columns[target.variable][places]
        kinds = self._run.kinds(target.variable)
        for place, rows, where, positions in self._run.entities.split(kinds, numbers):
            here = np.arange(len(numbers)) if where is None else where
            there = numbers[here] >= 0
            if not there.all():
                here, positions = here[there], positions[there]
            if len(here):
                yield target.properties[place], rows, places[here], positions

    def _has_no_text(
        self, target: PropertyValue, leaves: FrameValues, asked: np.ndarray
    ) -> np.ndarray:
        """Which of the given rows have no text."""
        numbers = leaves.frame.columns[target.variable]
        result: np.ndarray = asked & (numbers < 0)
        if not target.type.nullable:
            return result
        for prop, rows, here, positions in self._split(target, leaves, np.flatnonzero(asked)):
            if prop.nullable:
                texts = rows.take(prop.name, positions)
                result[here] = pc.is_null(texts).to_numpy(zero_copy_only=False)
        return result


def text_query(
    function: str, words: str, edits: int | None, analysis: Analysis
) -> TextQuery | None:
    """The question for an index, or None if the analysis leaves no word to look for."""
    if function == "match_text":
        return Phrase(words) if cut(words, analysis) else None
    if function == "search":
        found = distinct_words(words, analysis)
        return AnyWord(found) if found else None
    wanted = tuple(dict.fromkeys(cut(words, analysis)))
    if edits not in range(_EDITS + 1):
        raise InvalidParameters(f"`fuzzy` allows 0, 1 or {_EDITS} edits, and this is {edits}.")
    long = next((word for word in wanted if len(word) > LONGEST_FUZZY), None)
    if long is not None:
        raise InvalidParameters(
            f"`fuzzy` takes words of at most {LONGEST_FUZZY} letters, and {long!r} has {len(long)}."
        )
    if edits == 0:
        # Lance would cut the words a second time, and a stem may have a stem.
        return text_query("search", words, None, analysis)
    return Fuzzy(wanted, edits or 0) if wanted else None


def _alike(values: Value, rows: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Each distinct value, and the rows that have it."""
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        yield values.as_py(), np.arange(rows)
        return
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary)))
    start = 0
    for value, end in zip(encoded.dictionary.to_pylist(), ends.tolist(), strict=True):
        yield value, order[start:end]
        start = end


def _whole(edits: Value | None, places: np.ndarray, rows: int) -> int | None:
    """The number of edits, which is the same for all rows."""
    if edits is None or not len(places):
        return None
    found: int | None = broadcast(edits, rows)[int(places[0])].as_py()
    return found


def fixed_value(expression: Expression, leaves: FrameValues) -> Any:
    """The value of an expression that is the same for all rows."""
    value = evaluate(expression, leaves)
    return value[0].as_py() if isinstance(value, pa.Array | pa.ChunkedArray) else value.as_py()
