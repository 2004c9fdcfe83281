"""What a cleanup costs: so much for each branch, however many there are."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.engine.history import ancestry
from omnigraph.engine.upkeep import survey
from omnigraph.settings import Settings
from omnigraph.store.roots import parse_root
from tests.bench.aging import HOUR, PassingTime
from tests.unit.engine.faulty import fresh_root

SETTINGS = Settings(durability="relaxed", folding="off", queue=False)
FEW, MORE, MANY = 10, 100, 400


class Cost:
    """Requests of a cleanup of so many branches, and pairs of versions that it compared."""

    def __init__(self, branches: int, patch: pytest.MonkeyPatch) -> None:
        clock = PassingTime(patch)
        place = parse_root(fresh_root()).directory  # in memory: hundreds of syncs take their time
        assert place is not None
        schema = "node P { name: String @key }\n"
        g = omnigraph.init(place, schema=schema, settings=SETTINGS, runtime=clock)
        for number in range(branches):
            branch = f"b{number}"
            g.create_branch(branch)
            with g.branch(branch).transaction() as tx:
                tx.append("P", {"name": branch})
        with g.transaction() as tx:
            tx.append("P", {"name": "on main"})
        g.merge("b0")
        clock.wait(place, 2 * HOUR)
        self.pairs = 0
        compare = ancestry.shared_past

        def counted(*arguments: object) -> dict[str, int]:
            self.pairs += 1
            return compare(*arguments)  # type: ignore[arg-type]

        patch.setattr(survey, "shared_past", counted)
        patch.setattr(ancestry, "shared_past", counted)
        done = g.cleanup(keep=1, older_than=0)
        assert done.removed
        self.reads, self.writes = done.io.reads, done.io.writes
        g.close()


def test_it_grows_with_the_branches_and_not_faster() -> None:
    costs: dict[int, Cost] = {}
    for branches in (FEW, MORE, MANY):
        with pytest.MonkeyPatch.context() as patch:
            costs[branches] = Cost(branches, patch)
    for what in ("reads", "writes", "pairs"):
        few, more, many = (getattr(costs[branches], what) for branches in (FEW, MORE, MANY))
        first, second = (more - few) / (MORE - FEW), (many - more) / (MANY - MORE)
        assert second <= first * 1.05 + 0.1, (what, few, more, many)
    assert costs[MANY].reads <= 25 * MANY
    assert costs[MANY].writes <= 8 * MANY
