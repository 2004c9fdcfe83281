"""Owns what is learnt of a graph after steps: every new commit is explained by a step, and every
step by its commit, by eyes that know nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph import Graph
from omnigraph.model.version import Commit
from tests.sim.world.model import Refused, State, Unsure, renumber
from tests.sim.world.past import UNSEEN, Known, Line
from tests.sim.world.reading import Seen, read_state
from tests.sim.world.steps import DAMAGE, OPERATIONS, Fault, Record, compare

if TYPE_CHECKING:
    from tests.sim.world.world import World


class Observer:
    def __init__(self, world: World) -> None:
        self.world = world
        self.past = world.past

    def observe(self, records: list[Record]) -> None:
        """Looks, with eyes that know nothing, at what is new, and explains every commit of it by a
        step, and every step by its commit."""
        with self.world.place.open(mode="r") as g:
            new = self._learn(g, records)
            self._follow_branches(g, {one.id for one in new})
            self._follow_tags(g)
        for record in records:
            label = record.facts.get("label", record.step.label)
            self._account(record, [one for one in new if one.label == label])

    def observe_round(self, records: list[Record], touched: set[Any]) -> None:
        """After a round: branches and tags are what is found, if steps can have made them so."""
        for record in records:
            if record.code in DAMAGE - {"outcome_unknown", "corrupt"}:
                raise Fault(f"{record.step.label} says {record.code}: {record.error}")
        with self.world.place.open(mode="r") as g:
            gone = self._adopt_names(g, touched)
            new = self._learn(g, records)
            self._adopt_lines(g, gone)
            self._follow_branches(g, {one.id for one in new})
            self._adopt_tags(g, records)
        for record in records:
            if record.args.get("branch") not in touched:
                self._account(record, [one for one in new if one.label == record.step.label])

    def _adopt_names(self, g: Graph, touched: set[Any]) -> set[str]:
        """Branches that are another, or no more, or new."""
        found = {name: g.at(name).graph_version.incarnation for name in g.branches()}
        known = {name: line.real for name, line in self.past.lines.items()}
        changed = {
            name for name in found.keys() | known.keys() if found.get(name) != known.get(name)
        }
        if changed - touched:
            raise Fault(f"the branches {sorted(changed - touched)} are others, and nobody did that")
        for name in changed:
            self.past.lines.pop(name, None)
        return changed

    def _adopt_lines(self, g: Graph, names: set[str]) -> None:
        for name in sorted(names & set(g.branches())):
            version = g.at(name).graph_version
            path = [one.id for one in g.at(name).log(first_parent=True)][::-1]
            own = [one for one in path if self._made_on(one) == name]
            made = self.past.made[name] = self.past.made.get(name, 0) + 1
            self.past.lines[name] = Line(made, path, len(path) - len(own) - 1)
            for commit in path:
                if self.past.commits[commit].kind in ("protect", "unprotect"):
                    self.past.lines[name].protected = version.protected
            self.past.lines[name].gone |= set(path) & self.past.gone

    def _made_on(self, commit: str) -> str | None:
        record = self.world.by_label.get(self.past.commits[commit].label)
        return None if record is None else record.args.get("branch")

    def _adopt_tags(self, g: Graph, records: list[Record]) -> None:
        found = {name: commit.id for name, commit in g.tags().items()}
        named = {one.args["name"] for one in records if one.step.op in ("tag", "delete_tag")}
        changed = {
            name
            for name in found.keys() | self.past.tags.keys()
            if found.get(name) != self.past.tags.get(name)
        }
        if changed - named:
            raise Fault(f"the tags {sorted(changed - named)} are others, and nobody did that")
        self.past.tags = found

    def _learn(self, g: Graph, records: list[Record]) -> list[Known]:
        found: dict[str, Commit] = {}
        for commit in reversed(list(g.log(all=True))):
            if commit.id in found:
                raise Fault(f"the log tells {commit.id} twice")
            found[commit.id] = commit
        lost = self.past.reachable() - found.keys()
        if records and lost and not self._tags_only(lost):
            raise Fault(f"the log has lost {self._labels(lost)}")
        for tagged in g.tags():
            for commit in reversed(list(g.at(tagged).log())):
                found.setdefault(commit.id, commit)
        new = [one for one in found.values() if one.id not in self.past.commits]
        return [self._explain(g, one) for one in self._ordered(new)]

    def _ordered(self, new: list[Commit]) -> Iterator[Commit]:
        """Parents first, and restores as late as they can be: in a round they may bring what
        another branch has got only now."""
        left = {one.id: one for one in new}
        while left:
            ready = [one for one in left.values() if not any(p in left for p in one.parents)]
            following = next((one for one in ready if one.kind != "restore"), ready[0])
            yield left.pop(following.id)

    def _tags_only(self, lost: set[str]) -> bool:
        """Whether these are reached by tags alone, which the log of all branches leaves out."""
        lines = self.past.lines.values()
        return not lost & set().union(*(self.past.before(line.head) for line in lines))

    def _labels(self, commits: Iterable[str]) -> list[str]:
        return sorted(f"{one} ({self.past.commits[one].label})" for one in commits)

    def _explain(self, g: Graph, commit: Commit) -> Known:
        parents = tuple(commit.parents)
        if missing := [one for one in parents if one not in self.past.commits]:
            raise Fault(f"the commit {commit.id} has parents that nobody knows: {missing}")
        before = self.past.commits[parents[0]]
        if commit.created_at <= before.created_at or commit.id <= before.id:
            raise Fault(f"the commit {commit.id} does not come after its parent {before.id}")
        name, _, number = (commit.message or "").partition(".")
        record = self.world.by_label.get(name)
        if record is not None and number:
            record.facts["number"] = int(number)
        seen = read_state(self.world, g.at(commit.id))
        label, loses = record.step.label if record else commit.kind, False
        if commit.kind in UNSEEN or commit.kind in ("protect", "unprotect"):
            expected = before.state.copy()
        elif record is None:
            raise Fault(f"nobody made the commit {commit.id} ({commit.kind}, {commit.message})")
        else:
            expected = self._expected(record, commit, before.state, parents, seen)
            loses = bool(record.args.get("loss"))
        compare(f"the commit of {label} ({commit.kind})", expected.shown(), seen.shown)
        known = Known(commit.id, parents, commit.kind, commit.created_at, expected, label, loses)
        self.past.commits[commit.id] = known
        return known

    def _expected(
        self, record: Record, commit: Commit, before: State, parents: tuple[str, ...], seen: Seen
    ) -> State:
        effect = OPERATIONS[record.step.op].effect
        if effect is None:
            raise Fault(f"{record.step.label} ({record.step.op}) must not make a commit")
        try:
            return effect(self.world, record, before, parents)
        except Refused as why:
            raise Fault(
                f"{record.step.label} made a commit that the model refuses: {why}"
            ) from None
        except Unsure:
            sides = [before, *(self.past.state(one) for one in parents[1:])]
            state, twins = seen.adopt(sides, [one.state for one in self.past.commits.values()])
            for old, new in twins:
                for known in self.past.commits.values():
                    renumber(known.state, old, new)
            return state

    def _account(self, record: Record, made: list[Known]) -> None:
        label = record.step.label
        if record.step.op == "burst":
            told, ids = record.facts.get("commits", []), [one.id for one in made]
            if told != (ids if record.outcome in ("ok", "refused") else ids[: len(told)]):
                raise Fault(f"{label} was told the commits {told}, and made {ids}")
            return
        if len(made) > 1:
            raise Fault(f"{label} has {len(made)} commits")
        if record.outcome == "refused" and made:
            raise Fault(f"{label} was refused ({record.code}) and has a commit all the same")
        if record.outcome != "ok":
            return
        if record.commit is not None and not record.repeated:
            if record.commit not in self.past.commits:
                raise Fault(f"{label} was told the commit {record.commit}, which is nowhere")
            if made and made[0].id != record.commit:
                raise Fault(f"{label} was told {record.commit} and made {made[0].id}")
        if made and record.repeated:
            raise Fault(f"{label} was told that it only repeats, and made a commit")

    def _follow_branches(self, g: Graph, new: set[str]) -> None:
        names = set(g.branches())
        if names != self.past.lines.keys():
            raise Fault(f"there are the branches {sorted(names)}, not {sorted(self.past.lines)}")
        for name in sorted(names):
            line = self.past.lines[name]
            line.real = g.at(name).graph_version.incarnation
            found = [one.id for one in g.at(name).log(first_parent=True)][::-1]
            if found[: len(line.commits)] != line.commits:
                raise Fault(
                    f"the first parents of {name} were {self._labels(line.commits)} and are "
                    f"{self._labels(found)}"
                )
            for commit in found[len(line.commits) :]:
                if commit not in new:
                    raise Fault(
                        f"{name} goes on with {self._labels([commit])}, known from elsewhere"
                    )
                kind = self.past.commits[commit].kind
                if kind in ("protect", "unprotect"):
                    line.protected = kind == "protect"
            line.commits = found
        protected = {name for name, line in self.past.lines.items() if line.protected}
        if set(g.protected_branches()) != protected:
            raise Fault(f"protected are {g.protected_branches()}, not {sorted(protected)}")

    def _follow_tags(self, g: Graph) -> None:
        held = {name: commit.id for name, commit in g.tags().items()}
        if held != self.past.tags:
            raise Fault(f"the tags are {held}, not {self.past.tags}")
