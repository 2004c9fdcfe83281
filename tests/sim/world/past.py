"""Owns what the model knows of the past: commits with their states, branches, tags, retention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.sim.world import merging
from tests.sim.world.model import State, Unsure

UNSEEN = frozenset({"optimize", "cleanup", "discard", "upgrade"})
"""Kinds of commits that no reader can see."""


@dataclass
class Known:
    """A commit as it was first seen."""

    id: str
    parents: tuple[str, ...]
    kind: str
    created_at: int
    state: State
    label: str
    """Which step of the world made it."""
    loses: bool = False
    """It dropped something for good, so that cleanup may take what came before."""


@dataclass
class Line:
    """A branch: its commits along the first parents, oldest first. `own` counts from where it
    was made."""

    incarnation: int
    commits: list[str]
    own: int
    protected: bool = False
    real: int = 1
    """Its incarnation as the graph counts; `incarnation` is as the model counts."""
    gone: set[str] = field(default_factory=set)
    """Commits that refs through this branch may no longer reach."""
    bare: set[str] = field(default_factory=set)
    """Commits that they may not even reach as what maintenance made of them."""

    @property
    def head(self) -> str:
        return self.commits[-1]


@dataclass
class Kept:
    """Commits that a cleanup must leave as they are (`whole`), those that it must leave at least
    as what maintenance made of them (`bare`), both also for the refs through each branch; and
    those that some branch may lose though another holds them."""

    whole: set[str] = field(default_factory=set)
    bare: set[str] = field(default_factory=set)
    fragile: set[str] = field(default_factory=set)
    of_lines: dict[tuple[str, int], tuple[set[str], set[str]]] = field(default_factory=dict)


@dataclass
class Past:
    commits: dict[str, Known] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    """How often a branch of this name was made."""
    gone: set[str] = field(default_factory=set)
    """Commits that a cleanup may have taken."""
    fragile: set[str] = field(default_factory=set)
    """Commits that a cleanup may have taken from some branch that had them."""

    def state(self, commit: str) -> State:
        return self.commits[commit].state

    def head(self, branch: str) -> Known:
        return self.commits[self.lines[branch].head]

    def seen(self, commit: str) -> str:
        """Without the maintenance that came after it."""
        while self.commits[commit].kind in UNSEEN:
            commit = self.commits[commit].parents[0]
        return commit

    def visible(self, branch: str) -> list[str]:
        """Commits that a reader can tell apart, newest first."""
        line = self.lines[branch].commits
        return [one for one in reversed(line) if self.commits[one].kind not in UNSEEN]

    def before(self, commit: str) -> set[str]:
        """A commit and all that it comes from."""
        found: set[str] = set()
        todo = [commit]
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                todo += self.commits[one].parents
        return found

    def reachable(self) -> set[str]:
        ends = [line.head for line in self.lines.values()] + list(self.tags.values())
        return set().union(*(self.before(one) for one in ends))

    def bases(self, some: Iterable[str], other: str) -> list[str]:
        common = set().union(*(self.before(one) for one in some)) & self.before(other)
        older = set().union(*(self.before(one) - {one} for one in common))
        return sorted(common - older, reverse=True)

    def base(self, ours: str, theirs: str) -> State:
        return self._base(self.bases([ours], theirs))

    def _base(self, bases: list[str]) -> State:
        # Maintenance is no change: what it made of a base is that base.
        bases = list(dict.fromkeys(self.seen(one) for one in bases))
        if not bases:
            raise Unsure("nothing in common")
        pairs = [(self.state(bases[0]), self.state(bases[0]))]
        for number in range(1, len(bases)):
            below = self._base(self.bases(bases[:number], bases[number]))
            pairs.append((self.state(bases[number]), below))
        return merging.merge_bases(pairs)

    def is_up_to_date(self, ours: str, theirs: str) -> bool:
        return self.seen(theirs) in self.before(ours)

    def is_behind(self, ours: str, theirs: str) -> bool:
        return self.seen(ours) in self.before(theirs)

    def branch_off(self, name: str, commit: str) -> None:
        """A branch was made at a commit."""
        self.made[name] = self.made.get(name, 0) + 1
        path = [commit]
        while parents := self.commits[path[-1]].parents:
            path.append(parents[0])
        self.lines[name] = Line(self.made[name], path[::-1], len(path) - 1)

    # Retention

    def clean(self, now: int, keep: int, older_than: float, grace: float) -> Kept:
        """What a cleanup at this time must leave."""
        young = {one.id for one in self.commits.values() if one.created_at > now - grace * 1e6}
        kept = Kept(whole=set(young), bare=set(young))
        for name, line in self.lines.items():
            held = {line.head, *self._kept_of(line, now, keep, older_than)}
            whole = {one for one in held if self._is_last(line, one)} | young
            kept.of_lines[name, line.incarnation] = (whole, held | young)
            kept.whole |= whole
            kept.bare |= held
            kept.fragile |= set(line.commits[line.own :]) - whole
        kept.fragile |= self.commits.keys() - kept.whole
        return kept

    def _kept_of(self, line: Line, now: int, keep: int, older_than: float) -> Iterator[str]:
        count = 0
        for commit in reversed(line.commits[line.own :]):
            known = self.commits[commit]
            if known.kind in UNSEEN:
                continue
            count += 1
            if count <= keep or known.created_at > now - older_than * 1e6:
                yield commit
            if known.loses:
                return

    def _is_last(self, line: Line, commit: str) -> bool:
        """Whether no maintenance came right after it."""
        at = line.commits.index(commit)
        following = line.commits[at + 1 : at + 2]
        return not following or self.commits[following[0]].kind not in UNSEEN

    def cleaned(self, kept: Kept) -> None:
        """A cleanup was there: what it did not have to leave may be gone."""
        self.gone |= self.commits.keys() - kept.whole
        self.fragile |= kept.fragile
        for name, line in self.lines.items():
            whole, bare = kept.of_lines.get((name, line.incarnation), (set(), set()))
            line.gone |= set(line.commits) - whole
            line.bare |= set(line.commits) - bare

    def is_kept(self, commit: str, branch: str | None, *, whole: bool) -> bool:
        """Whether a ref to it, through a branch or by itself, must be readable. Not `whole`: what
        maintenance made of it is enough."""
        if branch is None:
            return commit not in self.gone
        line = self.lines[branch]
        if line.commits.index(commit) >= line.own:
            return commit not in (line.gone if whole else line.bare)
        return line.commits[line.own] not in line.gone and commit not in self.fragile
