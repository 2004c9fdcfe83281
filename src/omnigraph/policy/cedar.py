"""Owns deciding by Cedar policies: checked when they are read, asked by the engine, nothing allowed
that no policy permits."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

import cedarpy

from omnigraph.errors import InvalidArgument, InvalidPolicy
from omnigraph.model.caller import Caller
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.permission import Request, TypeResource, Verdict
from omnigraph.model.row_rule import NO_ROW, RowRule
from omnigraph.policy.cedar_schema import (
    actor_entities,
    cedar_schema,
    identity,
    list_attributes,
    resource_entities,
)
from omnigraph.policy.residual import (
    RowOf,
    UnsupportedResidualError,
    rule_of,
    unsupported_conditions,
)
from omnigraph.toml import read_toml

_KEPT = 65_536
V = TypeVar("V")


class CedarPolicies:
    """An `Authorizer`. `texts` are policies by the name of their file, `groups` the actors of each
    group, beside those that a credential names; `graphs` the schemas that the policies may speak
    of. Policies that are wrong in anything are refused here."""

    def __init__(
        self,
        texts: Mapping[str, str],
        *,
        groups: Mapping[str, Iterable[str]] | None = None,
        graphs: Mapping[str, Catalog | None] | None = None,
    ) -> None:
        self._groups = {name: frozenset(actors) for name, actors in (groups or {}).items()}
        self._schema = cedar_schema(graphs or {})
        self._lists = list_attributes(graphs or {})
        text = "\n".join(texts[name] for name in sorted(texts))
        self._policies = _parse(texts, text)
        self._names = _names(text)
        self.count = len(self._names)
        self._validate(text)
        self.digest = hashlib.sha256(
            json.dumps([text, sorted((n, sorted(a)) for n, a in self._groups.items())]).encode()
        ).hexdigest()
        self._verdicts: _Kept[Verdict] = _Kept()
        self._rules: _Kept[RowRule] = _Kept()

    @classmethod
    def read(
        cls,
        files: Sequence[str | os.PathLike[str]],
        *,
        groups: Mapping[str, Iterable[str]] | str | os.PathLike[str] | None = None,
        graphs: Mapping[str, Catalog | None] | None = None,
    ) -> CedarPolicies:
        """Of files, or of all `.cedar` files of a directory. `groups` are given, or the path of a
        TOML file with a list of actors for each group."""
        if isinstance(groups, str | os.PathLike):
            groups = read_groups(groups)
        return cls(read_texts(files), groups=groups, graphs=graphs)

    # What the engine asks

    def decide(self, request: Request) -> Verdict:
        caller = request.caller
        groups = self._groups_of(caller)
        key = (caller.actor, groups, request.action, request.resource, request.context)
        return self._verdicts.get(key, lambda: self._decide(request, groups))

    def rows(self, caller: Caller, kind: TypeResource, type: GraphType) -> RowRule:
        groups = self._groups_of(caller)
        key = (caller.actor, groups, kind, type)
        return self._rules.get(key, lambda: self._rows(caller, groups, kind, type))

    # How it is found

    def _decide(self, request: Request, groups: frozenset[str]) -> Verdict:
        entities = actor_entities(request.caller.actor, groups)
        known = {(one["uid"]["type"], one["uid"]["id"]) for one in entities}
        for one in resource_entities(request.resource):
            if (one["uid"]["type"], one["uid"]["id"]) not in known:
                entities.append(one)
        asked = {
            "principal": {"type": "Actor", "id": request.caller.actor},
            "action": {"type": "Action", "id": request.action},
            "resource": identity(request.resource),
            "context": dict(request.context),
        }
        found = cedarpy.is_authorized(asked, self._policies, entities)
        reasons = self._told(found.diagnostics.reasons)
        # Cedar passes over a policy with an error, and it may have been one that forbids.
        return Verdict(found.allowed and not found.diagnostics.errors, reasons)

    def _rows(
        self, caller: Caller, groups: frozenset[str], kind: TypeResource, type: GraphType
    ) -> RowRule:
        """What is forbidden of the type is forbidden of all of its rows."""
        of_type = self.decide(Request(caller, "see", kind))
        if not of_type.allowed and of_type.policies:
            return NO_ROW
        asked = {
            "principal": _written("Actor", caller.actor),
            "action": _written("Action", "see"),
            "context": {},
        }
        entities = [*actor_entities(caller.actor, groups), *resource_entities(kind)]
        found = cedarpy.is_authorized_partial(asked, self._policies, entities)
        if found.diagnostics.errors:
            return NO_ROW
        try:
            return rule_of(found.residuals.values(), RowOf(kind, type))
        except UnsupportedResidualError:
            return NO_ROW  # under a schema that the policies were not checked against

    def _groups_of(self, caller: Caller) -> frozenset[str]:
        own = {name for name, actors in self._groups.items() if caller.actor in actors}
        return caller.groups | own

    def _told(self, ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(self._names.get(one, one) for one in ids))

    def _validate(self, text: str) -> None:
        found = cedarpy.validate_policies(text, self._schema)
        problems = [
            f"{self._names.get(one.policy_id, one.policy_id)}: {one.error}" for one in found.errors
        ]
        problems += [
            f"{self._names.get(policy, policy)}: {reason}"
            for policy, reason in unsupported_conditions(text, self._lists)
        ]
        if problems:
            raise InvalidPolicy(
                "The policies do not hold together.\n" + "\n".join(f"  {p}" for p in problems),
                problems=problems,
            )


class _Kept(Generic[V]):
    """Answers that were found, by everything that they depend on."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, find: Callable[[], V]) -> V:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        found = find()
        with self._lock:
            self._held[key] = found
            while len(self._held) > _KEPT:
                self._held.popitem(last=False)
        return found


@lru_cache(maxsize=4096)
def _written(type: str, id: str) -> str:
    """An entity as Cedar writes it, which escapes letters in its own way."""
    if id.isascii() and id.replace("-", "").replace("_", "").isalnum():
        return f'{type}::"{id}"'
    everything = {"op": "All"}
    policy = {
        "effect": "permit",
        "principal": {"op": "==", "entity": {"type": type, "id": id}},
        "action": everything,
        "resource": everything,
        "conditions": [],
    }
    held = {"staticPolicies": {"p": policy}, "templates": {}, "templateLinks": []}
    text = cedarpy.policies_from_json_str(json.dumps(held))
    return text.partition("principal == ")[2].rpartition(", action, resource)")[0]


def read_texts(files: Sequence[str | os.PathLike[str]]) -> dict[str, str]:
    paths: list[Path] = []
    for one in files:
        place = Path(one)
        paths += sorted(place.glob("*.cedar")) if place.is_dir() else [place]
    if not paths:
        raise InvalidArgument("There are no policy files.", help="They end in .cedar.")
    texts = {}
    for path in paths:
        try:
            texts[str(path)] = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"The policies in {path} cannot be read: {error}.") from None
    return texts


def read_groups(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    held = read_toml(Path(path), f"The groups in {os.fspath(path)}")
    for name, actors in held.items():
        if not isinstance(actors, list) or not all(isinstance(one, str) for one in actors):
            raise InvalidArgument(f"The group {name!r} is no list of actors.")
    return held


def _parse(texts: Mapping[str, str], text: str) -> cedarpy.PolicySet:
    for name, one in texts.items():
        try:
            cedarpy.PolicySet.from_str(one)
        except ValueError as error:
            raise InvalidPolicy(f"{name} is no policy that Cedar can read: {error}") from None
    return cedarpy.PolicySet.from_str(text)


def _names(text: str) -> dict[str, str]:
    """What policies call themselves by `@id`."""
    held = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"]
    named = {}
    for number, (key, policy) in enumerate(held.items()):
        told = policy.get("annotations", {}).get("id")
        named[key] = told or f"policy {number + 1}"
    return named
