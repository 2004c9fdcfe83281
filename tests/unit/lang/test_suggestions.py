"""Suggestions: close names are found, far ones are not."""

from __future__ import annotations

import pytest

from omnigraph.lang.suggestions import near

TYPES = ["String", "Bool", "I32", "I64", "Date", "DateTime", "Blob"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Strng", "String"),
        ("string", "String"),
        ("Stirng", "String"),
        ("bool", "Bool"),
        ("Datetime", "DateTime"),
        ("Dat", "Date"),
        ("I63", "I64"),
        ("Blod", "Blob"),
    ],
)
def test_a_slip_finds_the_name_that_was_meant(name: str, meant: str) -> None:
    assert near(name, TYPES) == meant


@pytest.mark.parametrize("name", ["Person", "X", "", "Decimal128", "Sting-ray-fish"])
def test_a_name_that_is_far_from_all_others_finds_none(name: str) -> None:
    assert near(name, TYPES) is None


def test_a_name_is_never_suggested_for_itself() -> None:
    assert near("name", ["name", "nome"]) == "nome"


def test_the_same_name_in_another_case_wins_over_a_closer_spelling() -> None:
    assert near("worksat", ["worksas", "WORKSAT"]) == "WORKSAT"


def test_the_closest_wins_and_of_equals_the_first() -> None:
    assert near("colour", ["colours_", "color", "colout"]) == "color"
    assert near("aaaa", ["aaab", "aaac"]) == "aaab"


def test_of_equals_one_that_begins_alike_wins() -> None:
    assert near("lgo", ["algo", "log"]) == "log"
    assert near("lgo", ["log", "lgos"]) == "log"


def test_swapping_two_neighbours_is_one_slip() -> None:
    assert near("nmae", ["name"]) == "name"
    assert near("aenm", ["name"]) is None


def test_nothing_to_choose_from_finds_none() -> None:
    assert near("name", []) is None
