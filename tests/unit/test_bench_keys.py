"""The classes that requests are counted by."""

from __future__ import annotations

import pytest

from tests.bench.keys import key_class


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a/b/_graph.json", "graph"),
        ("a/__manifest/main/18446744073709551614.json", "version"),
        ("a/__manifest/main/", "version"),
        ("a/__manifest", "version"),
        ("_schema/abc.pg", "schema"),
        ("nodes/0123-01J/data/0101.lance", "data"),
        ("nodes/0123-01J/_transactions/1-x.txn", "transaction"),
        ("nodes/0123-01J/_versions/d9.manifest", "table_version"),
        ("nodes/0123-01J/_versions/", "table_version"),
        ("edges/0123-01J/_deletions/0-1-2.arrow", "deletion"),
        ("edges/0123-01J/_indices/u/page.lance", "index"),
        ("__hint/main.json", "hint"),
        ("nodes/x/_versions/latest_version_hint.json", "hint"),
        ("__wait/main/1-a", "wait"),
        ("nodes/x/_refs/tags/main.json", "other"),
        ("", "other"),
    ],
)
def test_every_part_of_the_layout_has_a_class(key: str, expected: str) -> None:
    assert key_class(key) == expected


def test_a_root_whose_own_prefix_is_called_data_is_not_all_data() -> None:
    assert key_class("data/__manifest/main/1.json") == "version"
    assert key_class("data/_graph.json") == "graph"
