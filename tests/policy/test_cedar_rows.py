"""A row rule shows the rows that Cedar itself would show, one by one."""

from __future__ import annotations

from typing import Any

import cedarpy
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidPolicy
from omnigraph.model.arrow import row_schema
from omnigraph.model.caller import Caller
from omnigraph.model.permission import TypeResource
from omnigraph.model.row_rule import columns_of
from omnigraph.plan.row_masks import visible_rows
from omnigraph.policy.cedar import CedarPolicies
from omnigraph.policy.cedar_schema import actor_entities, resource_entities, row_entity
from tests.model.query_data import catalog_of

CATALOG = catalog_of(
    "node Doc { title: String @key level: I32 size: I64? lang: enum(de, en)? open: Bool "
    "hot: Bool? tags: [String]? marks: [I64] owner: String? }"
)
(DOC,) = CATALOG.nodes
HERE = TypeResource("papers", "Doc", "node")
ADA = Caller("ada", frozenset({"staff"}))
TEXTS = ["", "a", "ada", "A*", "a.b", "x\ny", "é", "de"]
NUMBERS = [-3, 0, 1, 7, 2**40]


def quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


texts = st.sampled_from(TEXTS)
numbers = st.sampled_from(NUMBERS)


@st.composite
def checks(draw: st.DrawFn) -> str:
    """A condition on one property, which asks for it first where it may be missing."""
    text, number = quoted(draw(texts)), draw(numbers)
    op = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
    same = draw(st.sampled_from(["==", "!="]))
    pattern = draw(st.sampled_from(["*", "a*", "*a", "*.*", "a\\**", "", "*\\u{e9}", "x*y"]))
    return draw(
        st.sampled_from(
            [
                f"resource.title {same} {text}",
                f"resource.level {op} {number}",
                f"{number} {op} resource.level",
                f"resource has size && resource.size {op} {number}",
                f"resource has size && resource.size {op} resource.level",
                f"resource has lang && resource.lang {same} {text}",
                "resource.open",
                "!resource.open",
                f"resource.open {same} true",
                "resource has hot && resource.hot",
                "resource has tags",
                "!(resource has owner)",
                f"resource has tags && resource.tags.contains({text})",
                f"resource.marks.contains({number})",
                "resource.marks.contains(resource.level)",
                f"[{text}, {quoted('a')}].contains(resource.title)",
                f'resource.title like "{pattern}"',
                "resource has owner && resource.owner == principal.name",
                "resource has owner && resource.title == resource.owner",
                f"resource == papers::Doc::{text}",
                f'resource in [papers::Doc::{text}, papers::Doc::"ada"]',
                'resource in Graph::"papers"',
                'resource in Type::"papers/Doc"',
                'principal in Group::"staff"',
                f"resource.id {same} {text}",
            ]
        )
    )


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return f"({draw(checks())})"
    kind = draw(st.sampled_from(["&&", "||", "!"]))
    one = draw(conditions(depth - 1))
    if kind == "!":
        return f"!({one})"
    return f"({one} {kind} {draw(conditions(depth - 1))})"


@st.composite
def policies(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        effect = draw(st.sampled_from(["permit", "permit", "forbid"]))
        who = draw(
            st.sampled_from(
                [
                    "principal",
                    'principal == Actor::"ada"',
                    'principal in Group::"staff"',
                    'principal in Group::"none"',
                ]
            )
        )
        kind = draw(st.sampled_from(["when", "when", "unless"]))
        parts.append(
            f'{effect}({who}, action == Action::"see", resource is papers::Doc) '
            f"{kind} {{ {draw(conditions())} }};"
        )
    return "\n".join(parts)


maybe_text = st.one_of(st.none(), texts)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "title": texts,
            "level": st.sampled_from(NUMBERS[:4]),
            "size": st.one_of(st.none(), numbers),
            "lang": st.sampled_from([None, "de", "en"]),
            "open": st.booleans(),
            "hot": st.sampled_from([None, True, False]),
            "tags": st.one_of(st.none(), st.lists(texts, max_size=3)),
            "marks": st.lists(numbers, max_size=3),
            "owner": maybe_text,
        }
    ),
    min_size=1,
    max_size=6,
)


def in_full(text: str, row: dict[str, Any]) -> bool:
    """What Cedar says of one row that is there."""
    entity = row_entity(HERE, DOC, row)
    entities = [*actor_entities("ada", ADA.groups), *resource_entities(HERE), entity]
    kind, name = entity["uid"]["type"], entity["uid"]["id"]
    asked: dict[str, Any] = {
        "principal": 'Actor::"ada"',
        "action": 'Action::"see"',
        "resource": f"{kind}::{quoted(name)}",
        "context": {},
    }
    found = cedarpy.is_authorized(asked, text, entities)
    assert not found.diagnostics.errors
    return bool(found.allowed)


@given(policies(), rows)
def test_a_rule_is_what_cedar_says_of_each_row(text: str, held: list[dict[str, Any]]) -> None:
    policy = CedarPolicies({"p": text}, graphs={"papers": CATALOG})
    rule = policy.rows(ADA, HERE, DOC)
    held = [row | {"id": row["title"]} for row in held]
    batch = pa.RecordBatch.from_pylist(held, schema=row_schema(DOC))
    assert columns_of(rule) <= set(batch.schema.names)
    expected = np.array([in_full(text, row) for row in held])
    assert np.array_equal(visible_rows(rule, batch), expected), rule


REFUSED = {
    "arithmetic": "resource.level + 1 > 3",
    "a whole list": 'resource has tags && resource.tags == ["a"]',
    "containsAny": 'resource has tags && resource.tags.containsAny(["a"])',
    "a choice": "if resource.open then true else false",
    "no check of what may be missing": "resource.size > 3",
    "an unknown property": "resource.king == 3",
    "another type": 'resource.level == "a"',
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_rule_cannot_say_is_refused_when_policies_are_read(name: str) -> None:
    scope = '@id("mine") permit(principal, action, resource is papers::Doc)'
    text = f"{scope} when {{ {REFUSED[name]} }};"
    with pytest.raises(InvalidPolicy, match="mine"):
        CedarPolicies({"p": text}, graphs={"papers": CATALOG})


def test_a_schema_that_has_changed_since_hides_what_it_cannot_decide() -> None:
    text = (
        "permit(principal, action, resource) when { !(resource is papers::Doc) || "
        "resource.level > 1 };"
        "forbid(principal, action, resource is papers::Doc) when { resource.open };"
    )
    policy = CedarPolicies({"p": text}, graphs={"papers": CATALOG})
    (other,) = catalog_of("node Doc { title: String @key level: I32 }").nodes
    assert "NoRow" in repr(policy.rows(ADA, HERE, other))
    (texts_now,) = catalog_of("node Doc { title: String @key level: String open: Bool }").nodes
    assert "NoRow" in repr(policy.rows(ADA, HERE, texts_now))
    assert "NoRow" not in repr(policy.rows(ADA, HERE, DOC))


def test_what_is_forbidden_of_a_type_is_forbidden_of_its_rows() -> None:
    text = (
        "permit(principal, action, resource);"
        'forbid(principal, action == Action::"see", resource == Type::"papers/Doc");'
    )
    policy = CedarPolicies({"p": text}, graphs={"papers": CATALOG})
    assert "NoRow" in repr(policy.rows(ADA, HERE, DOC))


@pytest.mark.parametrize("effect", ["permit", "forbid"])
def test_an_action_in_a_list_is_known(effect: str) -> None:
    """Cedar leaves `in` undecided for what is not among its entities."""
    text = (
        "permit(principal, action, resource);"
        f'{effect}(principal, action in [Action::"see", Action::"read"], resource is papers::Doc)'
        " when { resource.open };"
    )
    policy = CedarPolicies({"p": text}, graphs={"papers": CATALOG})
    rule = policy.rows(ADA, HERE, DOC)
    assert ("EveryRow" if effect == "permit" else "Negated") in repr(rule)
    other = f'{effect}(principal, action in [Action::"read"], resource) when {{ true }};'
    policy = CedarPolicies({"p": text + other}, graphs={"papers": CATALOG})
    assert policy.rows(ADA, HERE, DOC) == rule
