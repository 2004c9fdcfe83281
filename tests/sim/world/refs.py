"""Owns refs in a world: how they are drawn, written, and what they must stand for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from tests.sim.world.hands import BRANCHES, TAGS
from tests.sim.world.model import Refused, Unsure

if TYPE_CHECKING:
    from tests.sim.world.world import World

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Ref:
    """`form` is head, back, commit, at, time or tag. A commit is named by the step that made it,
    so that the ref means something else, or nothing, when steps are left out."""

    form: str
    name: str = ""
    back: int = 0
    label: str = ""

    def __str__(self) -> str:
        match self.form:
            case "back":
                return f"{self.name}~{self.back}"
            case "commit":
                return f"@{self.label}"
            case "at" | "time":
                return f"{self.name}{'@' if self.form == 'at' else '*'}{self.label}"
        return self.name


def draw_ref(world: World, chance: Random) -> Ref:
    there = sorted(world.past.lines)
    name = chance.choice(there)
    form = chance.choice(("head", "back", "back", "commit", "commit", "at", "time", "tag"))
    if form == "back":
        return Ref("back", name, chance.randrange(1, 5))
    if form == "commit":
        return Ref(
            "commit", label=chance.choice([one.label for one in world.past.commits.values()])
        )
    if form in ("at", "time"):
        line = world.past.lines[name]
        return Ref(form, name, label=world.past.commits[chance.choice(line.commits)].label)
    if form == "tag":
        return Ref("tag", chance.choice(TAGS))
    return Ref("head", name)


def commit_of(world: World, label: str) -> str:
    """The first commit that a step made. Maintenance has no label of its own."""
    for one in world.past.commits.values():
        if one.label == label:
            return one.id
    raise Unsure("no step made such a commit")


def write_ref(world: World, ref: Ref) -> str:
    """As a user writes it."""
    match ref.form:
        case "back":
            return f"{ref.name}~{ref.back}"
        case "commit":
            return commit_of(world, ref.label)
        case "at":
            return f"{ref.name}@{commit_of(world, ref.label)}"
        case "time":
            at = world.past.commits[commit_of(world, ref.label)].created_at
            return f"{ref.name}*{(EPOCH + timedelta(microseconds=at)).isoformat()}"
    return ref.name


def resolve(world: World, ref: Ref) -> str:
    """The commit that a ref stands for by the model; `Refused` if there must be none, `Unsure` if
    a cleanup may have taken it."""
    past = world.past
    if ref.form == "tag":
        if ref.name in past.lines:
            return past.lines[ref.name].head
        if ref.name not in past.tags:
            raise Refused(
                "there is no such tag", "tag_not_found", "ref_not_found", "branch_not_found"
            )
        return past.tags[ref.name]
    if ref.form == "commit":
        commit = commit_of(world, ref.label)
        if commit not in past.reachable():
            raise Unsure("nothing leads there any more")
        return _kept(world, commit, None)
    return _resolve_on_branch(world, ref)


def _resolve_on_branch(world: World, ref: Ref) -> str:
    past = world.past
    if ref.name not in past.lines:
        raise Refused("there is no such branch", "branch_not_found", "ref_not_found")
    line = past.lines[ref.name]
    match ref.form:
        case "back":
            seen = past.visible(ref.name)
            if ref.back >= len(seen):
                raise Refused("it does not go back as far", "ref_not_found")
            return _kept(world, seen[ref.back], ref.name, whole=False)
        case "at":
            commit = commit_of(world, ref.label)
            if commit not in line.commits:
                raise Unsure("it is not on the branch, or not by first parents")
            return _kept(world, commit, ref.name)
        case "time":
            at = past.commits[commit_of(world, ref.label)].created_at
            before = [one for one in line.commits if past.commits[one].created_at <= at]
            if not before:
                raise Refused("there was nothing yet", "ref_not_found")
            return _kept(world, before[-1], ref.name)
    return line.head


class PerhapsGone(Unsure):
    """A cleanup may have taken it; if not, it is this commit."""

    def __init__(self, commit: str) -> None:
        super().__init__("a cleanup may have taken it")
        self.commit = commit


def _kept(world: World, commit: str, branch: str | None, *, whole: bool = True) -> str:
    if not world.past.is_kept(commit, branch, whole=whole):
        raise PerhapsGone(commit)
    return commit


__all__ = ["BRANCHES", "PerhapsGone", "Ref", "commit_of", "draw_ref", "resolve", "write_ref"]
