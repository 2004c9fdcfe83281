"""The same fault says the same words, under the same code and in the same order, everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.model.violation import Violation
from tests.contract.rule_book import (
    FAULTS,
    by_load,
    by_merge,
    by_mutation,
    by_schema,
    by_transaction,
    by_verify,
)

CASES = [
    (name, surface)
    for name, fault in FAULTS.items()
    for surface in sorted(fault.surfaces - {"spark"})
]


@pytest.mark.parametrize(("name", "surface"), CASES)
def test_the_same_fault_says_the_same_words(
    name: str, surface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = FAULTS[name]
    match surface:
        case "transaction":
            told = by_transaction(tmp_path, fault)
        case "mutation":
            told = by_mutation(tmp_path, fault)
        case "load":
            told = by_load(tmp_path, fault, "local")
        case "schema":
            told = by_schema(tmp_path, fault)
        case "merge":
            told = by_merge(tmp_path, fault)
        case _:
            told = by_verify(tmp_path, fault, monkeypatch)
    assert told == fault.told


def test_no_sentence_of_the_book_names_a_column_that_users_do_not_know() -> None:
    told = [one for fault in FAULTS.values() for one in fault.told]
    assert {code for code, _, _ in told} == {"key", "unique", "endpoint", "card", "orphan"}
    sentences = [message.replace("@key(src)", "") for _, message, _ in told]
    assert not [message for message in sentences if "src" in message or "dst" in message]
    assert Violation.__struct_fields__[:3] == ("type", "rule", "message")
