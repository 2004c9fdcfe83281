"""Owns the joins that find rows which break a rule between rows, in the SQL that DuckDB and Spark
share, over relations that each engine provides. Each relation is read once for each question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

R = TypeVar("R")


class Relations(Protocol[R]):
    """Answers questions over named relations, each written `{name}` in the question. The answer is
    a relation too.

    Rows that are checked have `place`, a number that orders them, and in a merge `origin`, the
    address of the row that each replaces, or null. Stored rows have `address`. Texts of unique
    values are `k0`, `k1`, …
    """

    def ask(self, sql: str, **named: R) -> R: ...

    def sized(self, relation: R, rows: int) -> R:
        """The relation, with an upper bound of its size for the planner of joins."""
        ...


def repeated(engine: Relations[R], rows: R, on: Sequence[str], *, limit: int | None = None) -> R:
    """Values that appear more than once, with `first`, the place of their first row."""
    names = ", ".join(on)
    return engine.ask(
        f"SELECT {names}, min(place) AS first FROM {{rows}} AS r WHERE {_given(on)} "
        f"GROUP BY {names} HAVING count(*) > 1{_at_most(limit)}",
        rows=rows,
    )


def later(
    engine: Relations[R], rows: R, again: R, on: Sequence[str], *, limit: int | None = None
) -> R:
    """All rows but the first of each group whose values are `repeated`."""
    return engine.ask(
        f"SELECT * FROM {{rows}} AS r JOIN {{again}} AS m USING ({', '.join(on)}) "
        f"WHERE place > first{_at_most(limit)}",
        rows=rows,
        again=again,
    )


def sharing(engine: Relations[R], rows: R, others: R, on: Sequence[str]) -> R:
    """Rows that share their values with one of the others."""
    return engine.ask(
        f"SELECT * FROM {{rows}} AS r SEMI JOIN {{others}} AS o USING ({', '.join(on)}) ",
        rows=rows,
        others=others,
    )


def staying(engine: Relations[R], stored: R, origins: R) -> R:
    """Stored rows that none of the rows replaces."""
    return engine.ask(
        "SELECT * FROM {stored} AS s ANTI JOIN {origins} AS o ON s.address = o.origin",
        stored=stored,
        origins=origins,
    )


def replaced(engine: Relations[R], stored: R, origins: R) -> R:
    """Stored rows that one of the rows replaces."""
    return engine.ask(
        "SELECT * FROM {stored} AS s SEMI JOIN {origins} AS o ON s.address = o.origin",
        stored=stored,
        origins=origins,
    )


def remaining(engine: Relations[R], sources: R, held: R, having: str) -> R:
    """Sources with `n`, the number of their edges, if `having` is true."""
    return engine.ask(
        "SELECT * FROM (SELECT src, coalesce(held, 0) AS n FROM {sources} AS s "
        f"LEFT JOIN {{held}} AS h USING (src)) AS t WHERE {having}",
        sources=sources,
        held=held,
    )


def loose(engine: Relations[R], edges: R, nodes: R, *, limit: int | None = None) -> R:
    """Edges whose `node` is the id of none of the nodes."""
    return engine.ask(
        "SELECT * FROM {edges} AS e ANTI JOIN {nodes} AS n ON e.node = n.id" + _at_most(limit),
        edges=edges,
        nodes=nodes,
    )


def counted(engine: Relations[R], edges: R) -> R:
    """How many edges each `src` has, as `held`."""
    return engine.ask(
        "SELECT src, count(*) AS held FROM {edges} AS e GROUP BY src",
        edges=edges,
    )


def totals(
    engine: Relations[R], rows: R, held: R | None, having: str, *, limit: int | None = None
) -> R:
    """Sources with `n`, the number of their edges including those that stay in the table, if
    `having`, a condition over `n`, is true."""
    if held is None:
        return engine.ask(
            f"SELECT * FROM (SELECT src, count(*) AS n FROM {{rows}} AS r GROUP BY src) AS t "
            f"WHERE {having}{_at_most(limit)}",
            rows=rows,
        )
    return engine.ask(
        "SELECT * FROM (SELECT src, count(*) + coalesce(max(held), 0) AS n FROM {rows} AS r "
        f"LEFT JOIN {{held}} AS h USING (src) GROUP BY src) AS t WHERE {having}{_at_most(limit)}",
        rows=rows,
        held=held,
    )


def outside(low: int, high: int | None) -> str:
    """The condition over `n` for too few or too many edges."""
    return f"n < {low}" if high is None else f"(n < {low} OR n > {high})"


def of_sources(engine: Relations[R], rows: R, wrong: R) -> R:
    """The rows of these sources, with `n`."""
    return engine.ask(
        "SELECT * FROM {rows} AS r JOIN {wrong} AS t USING (src)", rows=rows, wrong=wrong
    )


def beyond(
    engine: Relations[R], rows: R, held: R | None, wrong: R, high: int, *, replacing: bool
) -> R:
    """The surplus rows of these sources: the last ones, after all that only replace stored rows."""
    order = "(origin IS NULL), place" if replacing else "place"
    turn = f"row_number() OVER (PARTITION BY src ORDER BY {order}) AS turn"
    if held is None:
        return engine.ask(
            f"SELECT * FROM (SELECT *, {turn} FROM {{rows}} AS r JOIN {{wrong}} AS t USING (src)) "
            f"AS x WHERE turn > {high}",
            rows=rows,
            wrong=wrong,
        )
    return engine.ask(
        f"SELECT * FROM (SELECT *, {turn} FROM {{rows}} AS r JOIN {{wrong}} AS t USING (src) "
        f"LEFT JOIN {{held}} AS h USING (src)) AS x WHERE turn + coalesce(held, 0) > {high}",
        rows=rows,
        wrong=wrong,
        held=held,
    )


def without_any(engine: Relations[R], before: R, rows: R | None) -> R:
    """Sources that had edges before and have none of the rows."""
    if rows is None:
        return engine.ask("SELECT DISTINCT src FROM {before} AS b", before=before)
    return engine.ask(
        "SELECT DISTINCT src FROM {before} AS b ANTI JOIN {rows} AS r USING (src)",
        before=before,
        rows=rows,
    )


def either(engine: Relations[R], one: R, other: R, columns: Sequence[str]) -> R:
    """The rows of both, without duplicates."""
    names = ", ".join(columns)
    return engine.ask(
        f"SELECT {names} FROM {{one}} AS a UNION SELECT {names} FROM {{other}} AS b",
        one=one,
        other=other,
    )


def known(engine: Relations[R], sources: R, nodes: R) -> R:
    """The sources that are nodes."""
    return engine.ask(
        "SELECT src FROM {sources} AS s SEMI JOIN {nodes} AS n ON s.src = n.id",
        sources=sources,
        nodes=nodes,
    )


def _at_most(limit: int | None) -> str:
    return "" if limit is None else f" LIMIT {limit}"


def _given(names: Sequence[str]) -> str:
    return " AND ".join(f"{name} IS NOT NULL" for name in names)
