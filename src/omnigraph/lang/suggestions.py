"""Owns "did you mean": the closest of some names, or none if no name is close enough."""

from __future__ import annotations

from collections.abc import Iterable


def near(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was most likely meant, or None if nothing is close.

    The same name in another case always counts. Otherwise one slip is allowed for every three
    characters, and swapping two neighbours is one slip. Among equally close names, one with the
    same first letter wins, and then the first one.
    """
    best: str | None = None
    limit = min(3, (len(name) + 2) // 3) if len(name) > 1 else 0
    folded, same = name.casefold(), False
    for candidate in candidates:
        if candidate == name:
            continue
        if candidate.casefold() == folded:
            return candidate
        if abs(len(candidate) - len(name)) > limit or not candidate:
            continue
        distance = _distance(folded, candidate.casefold(), limit)
        begins = candidate[0].casefold() == folded[0]
        if distance < limit or (distance == limit and (best is None or begins > same)):
            best, limit, same = candidate, distance, begins
    return best


def _distance(a: str, b: str, limit: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours, or limit + 1 if there are
    more."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
