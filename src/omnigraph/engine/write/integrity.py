"""Owns how a transaction checks the rules between rows: on its final state, and only for what it
changed.

The changes are few, so values are looked up one by one and nothing is joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.engine.overlay import NEW
from omnigraph.engine.write.work import SHOWN, Work, refuse
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.violation import Violation
from omnigraph.plan.rules.book import (
    CardRule,
    End,
    Ends,
    NewId,
    OneRow,
    Orphans,
    Rule,
    UniqueRule,
    describe,
    edges_of,
    ends_of,
    final_rules,
    free_ends,
)
from omnigraph.plan.validate import key_texts

Row = dict[str, Any]


def check_integrity(work: Work) -> None:
    """Raises `InvalidData` with every violation."""
    violations = list(find_violations(work, {}))
    refuse(violations[:SHOWN], more=len(violations) - SHOWN)


def find_violations(work: Work, removed: Mapping[str, Sequence[str]]) -> Iterator[Violation]:
    """`removed` holds ids of nodes, by table key, that were removed without their edges."""
    changed = {kind.table_key for kind in work.touched}
    replaced = {key for key in changed if work.overlays[key].replaced}
    loosened = _loosened(work, removed)
    for rule in final_rules(work.snapshot.catalog, changed | loosened.keys(), replaced):
        yield from (describe(rule, row) for row in _broken(work, rule, loosened))


def _broken(work: Work, rule: Rule, loosened: Mapping[str, Sequence[_Loose]]) -> Iterator[Row]:
    match rule:
        case UniqueRule():
            return _shared(work, rule)
        case Ends():
            return _endless(work, rule, loosened.get(rule.kind.table_key, ()))
        case CardRule():
            return _miscounted(work, rule)
        case Orphans():
            return _orphaned(work, rule)
        case OneRow() | NewId():
            raise AssertionError("ids are checked by each statement")
        case _:
            assert_never(rule)


_Loose = tuple[str, str, str]
"""The end of an edge, the edge, and the missing node."""


def _loosened(work: Work, removed: Mapping[str, Sequence[str]]) -> dict[str, list[_Loose]]:
    """Edges, by table key, whose node was removed and has not come back."""
    found: dict[str, list[_Loose]] = {}
    catalog = work.snapshot.catalog
    for key, ids in removed.items():
        node = catalog.by_key[key]
        assert isinstance(node, NodeType)
        back = set(work.read(node).find(("id",), ids, work.ledger).positions.tolist())
        gone = [entity for position, entity in enumerate(ids) if position not in back]
        for edge, end in edges_of(catalog, node) if gone else ():
            view = work.read(edge)
            hit = view.find((end,), gone, work.ledger)
            stored = view.take(hit.addresses[:SHOWN], ["id"], work.ledger)["id"].to_pylist()
            pairs = list(zip(hit.base_positions.tolist(), stored, strict=False))
            pending = view.overlay.rows["id"].take(pa.array(hit.pending)).to_pylist()
            pairs += list(zip(hit.pending_positions.tolist(), pending, strict=True))
            loose = [(end, entity, gone[position]) for position, entity in pairs]
            if loose:
                found.setdefault(edge.table_key, []).extend(loose)
    return found


def _shared(work: Work, rule: UniqueRule) -> Iterator[Row]:
    overlay = work.overlays.get(rule.kind.table_key)
    if overlay is None or not overlay.rows.num_rows:
        return
    rows = overlay.rows
    texts = key_texts(rows, rule.columns)
    held = [text for text in texts if text is not None]
    found = work.find(rule.kind, rule.columns, held)
    taken = {held[position] for position in found.base_positions.tolist()}
    seen: set[str] = set()
    for row, text in enumerate(texts):
        if text is None:
            continue
        if text in taken or text in seen:
            yield {"id": rows["id"][row].as_py(), "text": text}
        seen.add(text)


def _endless(work: Work, rule: Ends, loosened: Sequence[_Loose]) -> Iterator[Row]:
    told = set()
    overlay = work.overlays.get(rule.kind.table_key)
    if overlay is not None and overlay.rows.num_rows:
        rows = overlay.rows
        if not _may_move(work, rule.kind, rule.end):
            rows = rows.filter(pa.array(overlay.origins == NEW))
        ids = rows[rule.end].unique().to_pylist()
        found = work.find(rule.node, ("id",), ids) if ids else None
        missing = set(ids)
        for position in found.positions.tolist() if found is not None else ():
            missing.discard(ids[position])
        if missing:
            pairs = zip(rows["id"].to_pylist(), rows[rule.end].to_pylist(), strict=True)
            for entity, value in pairs:
                if value in missing:
                    told.add(entity)
                    yield {"id": entity, "node": value}
    for end, entity, node in loosened:
        if end == rule.end and entity not in told:
            yield {"id": entity, "node": node}


def _may_move(work: Work, kind: EdgeType, end: End) -> bool:
    """Whether a row that replaces another may have another node at this end."""
    return end in free_ends(kind) or (work.moves_edges and not kind.key)


def _orphaned(work: Work, rule: Orphans) -> Iterator[Row]:
    """Deleting a node deletes its edges. Replacing all nodes does not, so it is refused."""
    kept = set(work.overlays[rule.kind.table_key].rows["id"].to_pylist())
    shown = 0
    for batch in work.read(rule.edge).scan(work.ledger, columns=["id", rule.end]):
        columns = [batch.column(name).to_pylist() for name in ("id", rule.end)]
        for entity, value in zip(*columns, strict=True):
            if value not in kept and shown < SHOWN:
                shown += 1
                yield {"id": entity, "node": value}


def _miscounted(work: Work, rule: CardRule) -> Iterator[Row]:
    if rule.kind.table_key in work.overlays:
        sources = _changed_sources(work, rule.kind)
        yield from _wrong_counts(work, rule.kind, sources)


def check_sources(work: Work, kind: EdgeType, sources: Sequence[str]) -> Iterator[Violation]:
    """Whether these nodes have as many edges as the type allows."""
    yield from (describe(CardRule(kind), row) for row in _wrong_counts(work, kind, sources))


def _wrong_counts(work: Work, kind: EdgeType, sources: Sequence[str]) -> Iterator[Row]:
    if not sources:
        return
    low, high = kind.card.low, kind.card.high
    found = work.find(kind, ("src",), sources)
    counts = Counter(found.base_positions.tolist() + found.pending_positions.tolist())
    (_, node), _ = ends_of(work.snapshot.catalog, kind)
    alive = set(work.find(node, ("id",), sources).positions.tolist())
    for position, source in enumerate(sources):
        count = counts[position]
        if (high is not None and count > high) or (count < low and position in alive):
            yield {"src": source, "n": count}


def _changed_sources(work: Work, kind: EdgeType) -> list[str]:
    """The sources of edges that were put, taken away or moved."""
    overlay = work.overlays[kind.table_key]
    only_added = not overlay.replaced and not len(overlay.hidden)
    view = work.view(kind) if only_added else work.read(kind)
    sources = set(overlay.rows["src"].to_pylist())
    if overlay.replaced:
        for batch in view.table.scan(["src"], work.ledger):
            sources.update(batch.column("src").to_pylist())
    else:
        gone = overlay.hidden
        if not _may_move(work, kind, "src"):
            gone = np.setdiff1d(gone, overlay.origins)
        if len(gone):
            sources.update(view.take(gone, ["src"], work.ledger)["src"].to_pylist())
    return sorted(sources)
