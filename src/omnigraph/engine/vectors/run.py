"""Owns running an embedding: the model is asked for the waiting texts, group by group, and the
vectors are committed.

A vector is stored only if its text is still the one that was embedded, so a concurrent writer wins.
Committed texts are not asked for again, so a run that died can simply be called again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from omnigraph.embedding.port import Embedder, Model
from omnigraph.engine.embedding.models import Models
from omnigraph.engine.executors import find_executor, is_here
from omnigraph.engine.graph_view import GraphView, find_type, full_view_of
from omnigraph.engine.session import Session
from omnigraph.engine.vectors.asking import Answers, Asker, Asks
from omnigraph.engine.vectors.journal import JournalFile, NoJournal, VectorJournal, journal_path
from omnigraph.engine.vectors.result import (
    COMMIT_EVERY,
    Embedded,
    EmbeddedProperty,
    EmbedProgress,
    OnEmbedProgress,
    Refused,
)
from omnigraph.engine.vectors.waiting import (
    TextVector,
    estimate,
    find_targets,
    targets_of,
    waiting_rows,
)
from omnigraph.engine.write.attempt import Write
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.publisher import require_unprotected
from omnigraph.engine.write.statements import EmbedRows, Statement
from omnigraph.errors import Conflict, InvalidArgument
from omnigraph.model.arrow import arrow_type
from omnigraph.model.catalog import Catalog
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import Commit
from omnigraph.plan.digest import digest_values
from omnigraph.runtime import reach
from omnigraph.telemetry import Ledger

KIND = "embed"
_SHOWN = 100


class EmbedExecutor(Protocol):
    """An engine that asks models for vectors in the place of this process."""

    def asker(
        self,
        session: Session,
        model: Model,
        dimension: int,
        journal: VectorJournal,
        batch: int | None,
    ) -> Asks:
        """Asks a model for the vectors of texts."""


@dataclass(frozen=True)
class EmbedCall:
    """The arguments of the caller. There is a commit after every `commit_every` texts, or a single
    one if that is None. `bare` means that a type without anything to embed is no error."""

    type: str | None = None
    property: str | None = None
    limit: int | None = None
    batch: int | None = None
    commit_every: int | None = COMMIT_EVERY
    dry_run: bool = False
    progress: OnEmbedProgress | None = None
    engine: str = "local"
    bare: bool = False

    def __post_init__(self) -> None:
        for name, least in (("limit", 0), ("batch", 1), ("commit_every", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidArgument(f"`{name}` is a number from {least} on, not {value}.")


def embed_waiting(
    session: Session, branch: str, call: EmbedCall, options: CommitOptions
) -> Embedded:
    return _Run(session, branch, call, options).run()


class _Run:
    def __init__(
        self, session: Session, branch: str, call: EmbedCall, options: CommitOptions
    ) -> None:
        self._session = session
        self._branch = branch
        self._call = call
        self._options = options
        self._ledger = Ledger()
        self._commits: list[Commit] = []
        self._pending: list[EmbedRows] = []
        self._stored: Counter[tuple[str, str]] = Counter()
        self._targets: dict[tuple[str, str], TextVector] = {}
        self._journals: list[VectorJournal] = []
        self._left = call.limit
        # A key stands for one commit.
        self._every = None if options.idempotency_key is not None else call.commit_every

    def run(self) -> Embedded:
        is_here(self._call.engine)  # raises the error for an unknown engine
        first = self._first_call()
        if first is not None:
            return first
        head = self._session.live_head(self._branch, self._ledger)
        self._session = self._session.holding(head.branch, head.incarnation)
        pin_commit(self._session, head, self._options, self._ledger)
        snapshot = full_view_of(self._session, head, self._ledger)
        targets = self._find_targets(snapshot.catalog)
        planned = [self._estimate(target, snapshot) for target in targets]
        if self._call.dry_run:
            return self._result(planned)
        require_unprotected(head, KIND)
        for target, plan in zip(targets, planned, strict=True):
            if plan.texts:
                self._model(target).require_ready(target.dimension)
        self._targets = {(one.kind.table_key, one.vector.name): one for one in targets}
        whole = False
        try:
            done = [
                self._embed(target, plan, snapshot) if plan.texts else plan
                for target, plan in zip(targets, planned, strict=True)
            ]
            self._commit()
            whole = True
        finally:
            for journal in self._journals:
                journal.close(done=whole)
        return self._result(
            [
                replace(one, embedded=self._stored[target])
                for one, target in zip(done, self._targets, strict=True)
            ]
        )

    def _find_targets(self, catalog: Catalog) -> list[TextVector]:
        if self._call.bare and self._call.type is not None:
            return targets_of(find_type(catalog, self._call.type))
        return find_targets(catalog, self._call.type, self._call.property)

    def _first_call(self) -> Embedded | None:
        """The work of an earlier call with the same key is not repeated."""
        if self._options.idempotency_key is None or self._call.dry_run:
            return None
        write = self._write()
        if (first := write.repeats()) is None:
            return None
        write.publish()  # raises if another call used the key
        return Embedded(self._branch, (), (first.commit,), repeated=True, io=self._ledger)

    def _model(self, target: TextVector) -> Embedder:
        return self._session.shared(Models).of(target.model)

    def _estimate(self, target: TextVector, snapshot: GraphView) -> EmbeddedProperty:
        found = estimate(target, snapshot)
        return EmbeddedProperty(
            type=target.kind.name,
            property=target.vector.name,
            source=target.source,
            model=str(target.model),
            paid=self._model(target).paid,
            texts=found.texts,
            tokens=found.tokens,
        )

    def _embed(
        self, target: TextVector, plan: EmbeddedProperty, snapshot: GraphView
    ) -> EmbeddedProperty:
        asker = self._asker(target)
        told = _Told(target, plan.texts, self._call.progress)
        refused: list[Refused] = []
        for group in self._groups(target, snapshot):
            answers = asker.ask(group["text"].to_pylist(), told.add)
            reach("texts embedded")
            refused += _refusals(group, answers)
            self._pending += put_vectors(target, group, answers)
            if self._every is not None:
                self._commit()
            if answers.failure is not None:
                raise answers.failure
            told.end_group(group.num_rows)
        return replace(plan, refusals=len(refused), refused=tuple(refused[:_SHOWN]))

    def _asker(self, target: TextVector) -> Asks:
        model, size, journal = self._model(target), target.dimension, self._journal(target)
        if is_here(self._call.engine):
            return Asker(model, size, journal, self._call.batch)
        spark: EmbedExecutor = find_executor(self._call.engine)
        return spark.asker(self._session, target.model, size, journal, self._call.batch)

    def _groups(self, target: TextVector, snapshot: GraphView) -> Iterator[pa.Table]:
        """The waiting rows, in groups that are sent together."""
        size = self._every or COMMIT_EVERY
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in waiting_rows(target, snapshot.view(target.kind), self._ledger):
            if self._left is not None:
                batch = batch.slice(0, self._left)
                self._left -= batch.num_rows
            held.append(batch)
            count += batch.num_rows
            while count >= size:
                rows = pa.Table.from_batches(held)
                yield rows.slice(0, size)
                held = rows.slice(size).to_batches()
                count -= size
            if self._left == 0:
                break
        if count:
            yield pa.Table.from_batches(held)

    def _commit(self) -> None:
        if not self._pending:
            return
        write = self._write()
        self._require_targets(write.catalog(reading=True, fresh=True))
        for statement in self._pending:
            stored = write.run(statement, reading=True, fresh=True)
            self._stored[statement.type, statement.property] += stored
        self._pending = []
        published = write.publish()
        if published is not None and published.version is not None:
            self._commits.append(published.version.commit)
        # The condition was for the first commit. After that the branch is ahead by our own commits.
        self._options = replace(self._options, if_commit=None)

    def _require_targets(self, catalog: Catalog) -> None:
        """If the schema has changed, the vectors may be for another model, size or source."""
        for one in self._pending:
            target = self._targets[one.type, one.property]
            kind = catalog.by_key.get(one.type)
            if kind is None or target.vector not in kind.properties:
                raise Conflict(
                    f"The schema of {target.name} was changed while texts were embedded.",
                    help="What is committed stays; run it again for the rest.",
                )

    def _reshape(self, statements: list[Statement], snapshot: GraphView) -> list[Statement]:
        self._require_targets(snapshot.catalog)
        return statements

    def _write(self) -> Write:
        write = Write(
            self._session,
            branch=self._branch,
            kind=KIND,
            options=self._options,
            reshape=self._reshape,
            ledger=self._ledger,
        )
        call = self._call
        write.call = digest_values([KIND, call.type, call.property, call.limit])
        return write

    def _journal(self, target: TextVector) -> VectorJournal:
        embedder = self._model(target)
        if not embedder.paid:
            return NoJournal()
        parts = (
            self._session.root.uri,
            self._branch,
            target.kind.id,
            target.vector.id,
            str(target.model),
            embedder.place,
            str(target.dimension),
        )
        try:
            journal = JournalFile(journal_path(*parts), target.dimension)
        except (OSError, RuntimeError):  # no home either
            return NoJournal()  # nowhere to write, so a run that dies asks again
        self._journals.append(journal)
        return journal

    def _result(self, properties: list[EmbeddedProperty]) -> Embedded:
        return Embedded(self._branch, tuple(properties), tuple(self._commits), io=self._ledger)


class _Told:
    """Counts for the progress report. Texts that appear twice have one answer, so the exact number
    is known at the end of a group."""

    def __init__(self, target: TextVector, texts: int, progress: OnEmbedProgress | None) -> None:
        self._target = target
        self._texts = texts
        self._progress = progress
        self._before = self._done = 0

    def add(self, more: int) -> None:
        self._done += more
        self._tell()

    def end_group(self, group: int) -> None:
        self._before += group
        self._done = self._before
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            kind, name = self._target.kind.name, self._target.vector.name
            self._progress(EmbedProgress(kind, name, self._done, self._texts))


def _refusals(group: pa.Table, answers: Answers) -> list[Refused]:
    if not answers.refused:
        return []
    rows = zip(group["id"].to_pylist(), group["text"].to_pylist(), strict=True)
    return [Refused(of, answers.refused[text]) for of, text in rows if text in answers.refused]


def put_vectors(target: TextVector, rows: pa.Table, answers: Answers) -> list[EmbedRows]:
    """The statement that stores the vectors, if there are any. Where a text means nothing to the
    model, the vector stays null."""
    found = [
        (place, vector)
        for place, text in enumerate(rows["text"].to_pylist())
        if (vector := answers.vectors.get(text)) is not None and vector.any()
    ]
    if not found:
        return []
    numbers = np.stack([vector for _, vector in found]).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(numbers.reshape(-1)), type=arrow_type(target.vector.type)
    )
    given = rows.take(pa.array([place for place, _ in found])).append_column("vector", vectors)
    return [EmbedRows(target.kind.table_key, target.vector.name, target.source, given)]
