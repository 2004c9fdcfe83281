"""Bytes that Lance would trust until the process ends: they are told by the name of their file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.damage import build_graph, stored_objects
from tests.hostile.test_links import ask


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trusted") / "graph"
    build_graph(root)
    return root


def flipped(data: bytes, place: int, bits: int = 0x80) -> bytes:
    held = bytearray(data)
    held[place] ^= bits
    return bytes(held)


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert len(old) == len(new)
    return data.replace(old, new)


def longer(data: bytes) -> bytes:
    """The name of each encoding goes on into what it is about, where there are NULs."""
    name = b"/lance.encodings.ColumnEncoding"
    return data.replace(bytes([len(name)]) + name, bytes([len(name) + 4]) + name)


CASES: dict[str, tuple[str, str, Callable[[bytes], bytes]]] = {
    "the count of buffers": ("/data/", "rows", lambda data: flipped(data, -13)),
    "the count of columns": ("/data/", "rows", lambda data: flipped(data, -9)),
    "where the columns are told": ("/data/", "rows", lambda data: flipped(data, -33)),
    "where a column is": ("/data/", "rows", lambda data: flipped(data, -49)),
    "the count in an index": ("page_data.lance", "query", lambda data: flipped(data, -13)),
    "a NUL in the name of an encoding": (
        "/data/",
        "rows",
        lambda data: renamed(data, b"/lance.encodings.Co", b"/lance\0encodings.Co"),
    ),
    "a NUL at the end of the encoding of a page": (
        "/data/",
        "rows",
        lambda data: renamed(data, b".PageLayout", b".PageLayou\0"),
    ),
    "the name of an encoding that goes on": ("/data/", "rows", longer),
    "a NUL in the name of an encoding in an index": (
        "page_data.lance",
        "query",
        lambda data: renamed(data, b"/lance.encodings.Co", b"\0lance.encodings.Co"),
    ),
    "the length of a message": ("/_deletions/", "rows", lambda data: flipped(data, 678)),
    "a byte that is gone": ("/_deletions/", "rows", lambda data: data[:430] + data[431:]),
    "the length of a buffer": ("/_deletions/", "rows", lambda data: flipped(data, 391)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_length_that_cannot_be_is_told(pristine: Path, tmp_path: Path, case: str) -> None:
    part, name, change = CASES[case]
    root = tmp_path / "graph"
    seen = set()
    keys = [key for key in stored_objects(pristine) if part in key and not key.endswith(".blob")]
    for key in sorted(keys, key=lambda one: -(pristine / one).stat().st_size)[:2]:
        shutil.copytree(pristine, root)
        (root / key).write_bytes(change((root / key).read_bytes()))
        for told in ask(root, [name, "rows of a tag", "verify deep"]).values():
            assert "raw" not in told, (key, told)
            if told:
                assert (told["code"], key in told["message"]) == ("corrupt", True), (key, told)
                seen.add(key)
        shutil.rmtree(root)
    assert seen


def test_the_length_of_a_large_value_is_not_believed(pristine: Path, tmp_path: Path) -> None:
    """Descriptors lie in the data file; some bytes of one are tried."""
    root = tmp_path / "graph"
    shutil.copytree(pristine, root)
    tables = {key.rsplit("/data/")[0] for key in stored_objects(root) if key.endswith(".blob")}
    files = [
        key
        for key in stored_objects(root)
        if key.endswith(".lance") and "/data/" in key and key.rsplit("/data/")[0] in tables
    ]
    key = max(files, key=lambda one: (root / one).stat().st_size)
    whole = (root / key).read_bytes()
    codes = set()
    for place in range(100_000, 100_044, 5):
        (root / key).write_bytes(flipped(whole, place, 0xDC))
        told = ask(root, ["rows"])["rows"]
        assert "raw" not in told, (place, told)
        if told:
            assert key in told["message"], (place, told)
            codes.add(told["code"])
    assert codes == {"corrupt"}


def test_a_nul_in_the_name_of_a_data_file_is_told(pristine: Path, tmp_path: Path) -> None:
    root = tmp_path / "graph"
    shutil.copytree(pristine, root)
    seen = False
    for key in stored_objects(root):
        if key.endswith(".manifest"):
            data = (root / key).read_bytes()
            (root / key).write_bytes(data.replace(b".lance", b"\0lance"))
            seen |= b".lance" in data
    assert seen
    for told in ask(root, ["rows", "query", "verify deep"]).values():
        assert "raw" not in told, told
        if told:
            assert (told["code"], "names a file" in told["message"]) == ("corrupt", True), told
