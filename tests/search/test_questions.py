"""What is drawn to judge search: it checks, finds something, and leaves no construct out."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.search.questions import draw_question
from tests.search.world import World, plain

FEATURES = (
    "search(", "match_text(", "fuzzy(", "bm25(", "nearest(", "rrf(", "k=", "optional {", "not {",
    "exists {", "not search", "is null", "$w:wrote", "cites{1,2}", "Titled", "limit 0", "offset",
    " asc", " desc", "Vector(5)", "String?",
)  # fmt: skip


def test_drawn_questions_find_something_and_leave_no_construct_out() -> None:
    world = World(Random(2), size=30)
    rows = plain(world.g)
    seen: Counter[str] = Counter()
    for seed in range(300):
        question = draw_question(Random(seed))
        world.g.query(question.text, params=dict(question.params))
        seen.update(name for name in FEATURES if name in question.text)
        found = question.answer(rows)
        seen["some"] += len(found) > 1
        order = question.order
        alike = order is not None and order.text.replace("bm25", "search", 1) in question.text
        seen["alike"] += alike and len(found) > 1
        seen["tied"] += len({key for key, _, _ in found}) < len(found)
        seen["ranked"] += len({key for key, _, _ in found if key}) > 1
        seen["unranked"] += any(key is None for key, _, _ in found)
    world.close()
    assert all(seen[name] >= 3 for name in FEATURES), seen
    assert min(seen["some"], seen["tied"], seen["ranked"]) > 50, seen
    assert min(seen["unranked"], seen["alike"] * 3) > 30, seen
