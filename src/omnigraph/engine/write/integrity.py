"""Owns the rules between rows: unique values, endpoints, orphans and cardinality.

They are checked on the final state of a transaction and only for what it changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.engine.overlay import NEW
from omnigraph.engine.view import TableView
from omnigraph.engine.write.work import SHOWN, Work, refuse
from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.model.violation import Violation
from omnigraph.plan.validate import key_texts


def check_integrity(work: Work) -> None:
    """Raises `InvalidData` with everything that is wrong."""
    violations = list(find_violations(work, {}))
    refuse(violations[:SHOWN], more=len(violations) - SHOWN)


def find_violations(work: Work, removed: Mapping[str, Sequence[str]]) -> Iterator[Violation]:
    """`removed` holds ids of nodes, by table key, that went without taking their edges along."""
    for kind in work.touched:
        yield from _check_uniques(work, kind)
        match kind:
            case EdgeType():
                yield from _check_endpoints(work, kind)
                yield from _check_cards(work, kind)
            case NodeType():
                yield from _check_orphans(work, kind)
                yield from _check_removed(work, kind, removed.get(kind.table_key, ()))


def _check_removed(work: Work, kind: NodeType, removed: Sequence[str]) -> Iterator[Violation]:
    still = work.read(kind).find(("id",), removed, work.ledger).positions.tolist()
    ids = [entity for position, entity in enumerate(removed) if position not in set(still)]
    if not ids:
        return
    for edge in work.snapshot.catalog.edges:
        for end, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != kind.name:
                continue
            view = work.read(edge)
            found = view.find((end,), ids, work.ledger)
            edges = []
            if len(found.addresses):
                rows = view.take(found.addresses[:SHOWN], ["id"], work.ledger)
                edges = list(zip(found.base_positions, rows["id"].to_pylist(), strict=False))
            pending = view.overlay.rows["id"].take(pa.array(found.pending)).to_pylist()
            edges += list(zip(found.pending_positions, pending, strict=True))
            for position, entity in edges:
                yield _endless(edge, entity, end, kind.name, ids[int(position)])


def _endless(edge: EdgeType, entity: str, end: str, node_name: str, node: str) -> Violation:
    return Violation(
        type=edge.name,
        rule="endpoint",
        id=entity,
        property=end,
        value=node,
        message=f"{edge.name} {entity!r} has {end} {node!r}, but there is no {node_name} with "
        "that id.",
    )


def _orphan(kind: NodeType, node: str, edge: EdgeType, entity: str, end: str) -> Violation:
    return Violation(
        type=kind.name,
        rule="orphan",
        id=node,
        message=f"{kind.name} {node!r} would be gone, but {edge.name} {entity!r} has it as its "
        f"{end}.",
    )


def _check_uniques(work: Work, kind: GraphType) -> Iterator[Violation]:
    rows = work.overlays[kind.table_key].rows
    if not rows.num_rows:
        return
    for columns in kind.uniques:
        view = work.read(kind)
        texts = key_texts(rows, columns)
        held = [text for text in texts if text is not None]
        found = view.find(columns, held, work.ledger)
        taken = {held[position] for position in found.base_positions.tolist()}
        seen: set[str] = set()
        for row, text in enumerate(texts):
            if text is None:
                continue
            if text in taken or text in seen:
                yield _not_unique(kind, columns, rows["id"][row].as_py(), text)
            seen.add(text)


def _check_endpoints(work: Work, kind: EdgeType) -> Iterator[Violation]:
    overlay = work.overlays[kind.table_key]
    rows = overlay.rows.filter(pa.array(overlay.origins == NEW))
    if not rows.num_rows:
        return
    for end, node_name in (("src", kind.source), ("dst", kind.target)):
        node = work.snapshot.catalog.node_names[node_name]
        ids = rows[end].unique().to_pylist()
        found = work.read(node).find(("id",), ids, work.ledger)
        missing = set(ids)
        for position in found.positions.tolist():
            missing.discard(ids[position])
        if not missing:
            continue
        for row, (entity, value) in enumerate(
            zip(rows["id"].to_pylist(), rows[end].to_pylist(), strict=True)
        ):
            if value in missing:
                yield Violation(
                    type=kind.name,
                    rule="endpoint",
                    id=entity,
                    property=end,
                    value=value,
                    row=row,
                    message=f"{kind.name} {entity!r} has {end} {value!r}, but there is no "
                    f"{node_name} with that id.",
                )


def _check_orphans(work: Work, kind: NodeType) -> Iterator[Violation]:
    """Deleting takes a node's edges along; replacing all nodes does not, so it is refused."""
    overlay = work.overlays[kind.table_key]
    if not overlay.replaced:
        return
    kept = set(overlay.rows["id"].to_pylist())
    for edge in work.snapshot.catalog.edges:
        for end, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != kind.name:
                continue
            shown = 0
            for batch in work.read(edge).scan(work.ledger, columns=["id", end]):
                for entity, value in zip(
                    batch.column("id").to_pylist(), batch.column(end).to_pylist(), strict=True
                ):
                    if value in kept or shown >= SHOWN:
                        continue
                    shown += 1
                    yield _orphan(kind, value, edge, entity, end)


def _check_cards(work: Work, kind: EdgeType) -> Iterator[Violation]:
    card = kind.card
    if card.low == 0 and card.high is None:
        return
    yield from check_sources(work, kind, _changed_sources(work, work.read(kind)))


def check_sources(work: Work, kind: EdgeType, sources: Sequence[str]) -> Iterator[Violation]:
    """Whether these nodes have as many edges as the type allows."""
    card = kind.card
    if not sources:
        return
    view = work.read(kind)
    found = view.find(("src",), sources, work.ledger)
    counts = Counter(found.base_positions.tolist() + found.pending_positions.tolist())
    node = work.snapshot.catalog.node_names[kind.source]
    alive = set(work.read(node).find(("id",), sources, work.ledger).positions.tolist())
    for position, source in enumerate(sources):
        count = counts[position]
        if card.high is not None and count > card.high:
            yield _card_broken(kind, source, count, f"at most {card.high}")
        elif count < card.low and position in alive:
            yield _card_broken(kind, source, count, f"at least {card.low}")


def _changed_sources(work: Work, view: TableView) -> list[str]:
    overlay = view.overlay
    sources = set(overlay.rows["src"].to_pylist())
    if overlay.replaced:
        for batch in view.table.scan(["src"], work.ledger):
            sources.update(batch.column("src").to_pylist())
    else:
        gone = np.setdiff1d(overlay.hidden, overlay.origins)
        if len(gone):
            sources.update(view.take(gone, ["src"], work.ledger)["src"].to_pylist())
    return sorted(sources)


def _not_unique(kind: GraphType, columns: tuple[str, ...], entity: str, text: str) -> Violation:
    names = ", ".join(columns)
    return Violation(
        type=kind.name,
        rule="unique",
        id=entity,
        property=names,
        value=text[:80],
        message=f"{kind.name} {entity!r} has {names} = {text[:80]!r}, which another "
        f"{kind.name} has already; @unique({names}) allows it once.",
    )


def _card_broken(kind: EdgeType, source: str, count: int, rule: str) -> Violation:
    return Violation(
        type=kind.name,
        rule="card",
        id=source,
        property="src",
        value=str(count),
        message=f"{kind.source} {source!r} would have {count} {kind.name} edges; "
        f"@card allows {rule}.",
    )
