"""Bytes are known from the moment that they are written: a flipped one is found by the first deep
look, also after cleanup took the versions that wrote the file, and no copy carries it on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import Corrupt
from omnigraph.store.table_checksums import read_sums
from tests.bench.aging import age
from tests.hostile.damage import SETTINGS, build_graph, rows_of, stored_objects

KINDS = ("/data/", "/_deletions/", "/_indices/", ".blob")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sums") / "graph"
    build_graph(root)
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    place = tmp_path / "graph"
    shutil.copytree(built, place)
    return place


def known(root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in stored_objects(root):
        if key.endswith(".txn"):
            found |= read_sums((root / key).read_bytes(), key)
        elif key.startswith("__digests/"):
            found |= json.loads((root / key).read_text())["files"]
    return found


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0x10
    path.write_bytes(data)


def test_every_data_file_has_a_checksum_though_nobody_has_looked(root: Path) -> None:
    files = [key for key in stored_objects(root) if any(kind in key for kind in KINDS)]
    assert all(any(kind in key for key in files) for kind in KINDS), files
    assert [key for key in files if key not in known(root)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_deep_look_finds_a_flipped_byte(root: Path, kind: str) -> None:
    for key in [key for key in stored_objects(root) if kind in key]:
        whole = (root / key).read_bytes()
        flip(root / key, len(whole) // 2)
        with omnigraph.open(root, settings=SETTINGS, mode="r") as g:
            assert key in {error.object for error in g.verify(deep=True).errors}
        (root / key).write_bytes(whole)


def test_cleanup_keeps_the_checksums_of_what_it_leaves(root: Path) -> None:
    before = known(root)
    age(root, 90 * 24 * 3600)
    with omnigraph.open(root, settings=SETTINGS) as g:
        for n in range(3):
            g.mutate(f'insert Note {{ text: "later {n}" }}')
        for _ in range(2):
            assert g.cleanup(keep=1, older_than=0).removed
            age(root, 90 * 24 * 3600)
            g.mutate('insert Note { text: "again" }')
        assert g.verify(deep=True).ok
    left = known(root)
    files = set(stored_objects(root))
    kept = {key: value for key, value in before.items() if key in files}
    assert kept
    assert kept.items() <= left.items()
    assert not {key for key in left if key not in files and key.startswith(("nodes/", "edges/"))}
    assert len(list((root / "__digests").iterdir())) <= 2


def test_a_copy_takes_the_checksums_along_and_no_damage(root: Path, tmp_path: Path) -> None:
    omnigraph.copy(root, tmp_path / "copy", settings=SETTINGS)
    copied = known(tmp_path / "copy")
    data = [key for key in stored_objects(tmp_path / "copy") if any(kind in key for kind in KINDS)]
    assert data
    assert set(data) <= copied.keys()
    flip(root / data[0], 40)
    with pytest.raises(Corrupt, match=data[0]):
        omnigraph.copy(root, tmp_path / "second", settings=SETTINGS)


def test_a_damaged_transaction_is_told_and_not_the_files_that_it_knows(root: Path) -> None:
    key = next(k for k in stored_objects(root) if k.endswith(".txn") and known_of(root, k))
    data = (root / key).read_bytes()
    place = data.index(b"omnigraph.sums") + 40
    flip(root / key, place)
    with omnigraph.open(root, settings=SETTINGS, mode="r") as g:
        report = g.verify(deep=True)
        rows_of(g)
    assert [error.object for error in report.errors] == [key]


def known_of(root: Path, key: str) -> dict[str, str]:
    return read_sums((root / key).read_bytes(), key)


def test_two_versions_that_share_a_damaged_fragment_are_both_looked_at(root: Path) -> None:
    shared = [key for key in stored_objects(root) if key.endswith(".lance") and "/data/" in key]
    for key in shared:
        whole = (root / key).read_bytes()
        (root / key).write_bytes(whole[: len(whole) // 2])
        with omnigraph.open(root, settings=SETTINGS, mode="r") as g:
            report = g.verify(deep=True)
        assert key in {error.object for error in report.errors}
        (root / key).write_bytes(whole)
