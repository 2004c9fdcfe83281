"""What is told of a wrong query, and when a corrected one is known."""

from __future__ import annotations

import pytest

from omnigraph.lang.gq.checking import check_text, correct_text
from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import Catalog
from omnigraph.plan.migrate import apply_steps, plan_migration

SCHEMA = """
node Person { name: String @key age: I32? }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    schema = compile_schema(SCHEMA).schema
    assert schema is not None
    return apply_steps(None, plan_migration(None, schema).steps)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("match { $p: Persn } return { $p.name }", "match { $p: Person } return { $p.name }"),
        (
            "match { $p: person $p know $f } retrun { $p.nme, $f.name } ordr { $p.name }",
            "match { $p: Person $p knows $f } return { $p.name, $f.name } order { $p.name }",
        ),
        (
            "match { $person: Person } return { $persn.name }",
            "match { $person: Person } return { $person.name }",
        ),
        (
            "match { $p: Person } return { cuont($p) as n }",
            "match { $p: Person } return { count($p) as n }",
        ),
        ('insert Person { name = "Zoe" }', 'insert Person { name : "Zoe" }'),
        (
            'update Persn set { agee: 3 } where nam = "x"',
            'update Person set { age: 3 } where name = "x"',
        ),
        (
            "query q($name: Strng) { match { $p: Person { name: $nam } } return { $p.age } }",
            "query q($name: String) { match { $p: Person { name: $name } } return { $p.age } }",
        ),
    ],
)
def test_slips_are_mended(catalog: Catalog, wrong: str, right: str) -> None:
    checked = check_text(wrong, catalog)
    assert not checked.ok
    assert checked.corrected == right
    assert check_text(right, catalog).ok


@pytest.mark.parametrize(
    "wrong",
    [
        "MATCH (p:Person) RETURN p",
        "match { $p: Person } return { $q.name }",
        "match { $p: Elephant } return { $p.name }",
        "match { $p: Persn } return { $p.weight }",
    ],
)
def test_what_nobody_can_know_is_not_made_up(catalog: Catalog, wrong: str) -> None:
    checked = check_text(wrong, catalog)
    assert checked.corrected is None
    assert not checked.ok


def test_an_empty_text_has_no_mistake(catalog: Catalog) -> None:
    """A file of queries may have none yet."""
    checked = check_text("", catalog)
    assert (checked.ok, checked.queries, checked.corrected) == (True, (), None)


def test_a_right_text_needs_no_correction(catalog: Catalog) -> None:
    text = "match { $p: Person } return { $p.name }"
    checked = check_text(text, catalog)
    assert (checked.ok, checked.corrected, checked.diagnostics) == (True, None, ())
    assert [one.kind for one in checked.queries] == ["read"]


def test_a_correction_is_right_or_there_is_none(catalog: Catalog) -> None:
    """Letters are left out of a right query, one after the other."""
    text = "match { $p: Person $p knows $f } return { $p.name, $f.age as years } limit 3"
    mended = 0
    for at in range(len(text)):
        wrong = text[:at] + text[at + 1 :]
        found = correct_text(wrong, catalog)
        if found is not None:
            mended += 1
            assert check_text(found, catalog).ok, found
    assert mended > 20
