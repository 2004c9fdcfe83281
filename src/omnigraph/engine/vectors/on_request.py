"""Owns embedding as a part of another operation: the rows that a mutation is about to write, and
the types that a load has just written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.embedding.models import Models
from omnigraph.engine.session import Session
from omnigraph.engine.vectors.asking import Answers, Asker
from omnigraph.engine.vectors.journal import NoJournal
from omnigraph.engine.vectors.run import EmbedCall, embed_waiting, put_vectors
from omnigraph.engine.vectors.waiting import TextVector, said, targets_of
from omnigraph.engine.write.attempt import Write
from omnigraph.errors import NotEmbedded, OmnigraphError, TextRefused
from omnigraph.model.catalog import Catalog
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import Commit


def embed_pending(session: Session, write: Write) -> int:
    """Gives vectors to the rows that a write is about to publish, in the same commit, and returns
    how many. If a text cannot be embedded, nothing is written."""
    if write.repeats() is not None or not write.statements:
        return 0
    work, embedded = write.working(reading=True), 0
    for kind in work.touched:
        for target in targets_of(kind):
            rows = _lacking(target, work.overlays[kind.table_key].rows)
            if rows.num_rows:
                answers = _ask(session, target, rows)
                for statement in put_vectors(target, rows, answers):
                    embedded += write.run(statement, reading=True)
    return embedded


def _lacking(target: TextVector, pending: pa.Table) -> pa.Table:
    lacks = pc.and_(pending[target.vector.name].is_null(), pending[target.source].is_valid())
    rows = pending.filter(lacks).select(["id", target.source]).rename_columns(["id", "text"])
    return said(rows)


def _ask(session: Session, target: TextVector, rows: pa.Table) -> Answers:
    embedder = session.shared(Models).of(target.model)
    embedder.require_ready(target.dimension)
    asker = Asker(embedder, target.dimension, NoJournal())
    answers = asker.ask(rows["text"].to_pylist(), lambda _: None)
    if answers.failure is not None:
        raise answers.failure
    if answers.refused:
        text, reason = next(iter(answers.refused.items()))
        entity = rows["id"][rows["text"].to_pylist().index(text)].as_py()
        raise TextRefused(f"The text of {target.kind.name} {entity!r} is refused. {reason}")
    return answers


def require_models(session: Session, catalog: Catalog, type: str | None) -> None:
    """Before a load begins, raises an error if the texts of its type could not be embedded."""
    kind = None if type is None else catalog.find(type)
    for target in () if kind is None else targets_of(kind):
        session.shared(Models).of(target.model).require_ready(target.dimension)


def embed_loaded(
    session: Session,
    branch: str,
    types: Iterable[str],
    commit: Commit | None,
    options: CommitOptions,
) -> int:
    """Embeds the waiting texts of the types that a load has touched, and returns how many. The load
    has landed, whatever happens here."""
    plain = replace(options, if_commit=None, idempotency_key=None)
    embedded = 0
    try:
        for name in types:
            done = embed_waiting(session, branch, EmbedCall(name, bare=True), plain)
            embedded += done.embedded
    except OmnigraphError as error:
        told = "The rows are loaded" if commit is None else f"The rows are in commit {commit.id}"
        raise NotEmbedded(
            f"{told}, but not all of their texts are embedded: {error.message}",
            commit=None if commit is None else commit.id,
            embedded=embedded,
        ) from error
    return embedded
