"""Every kind of bad input has its own clear error, and nothing changes."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph, Transaction
from omnigraph.errors import (
    Conflict,
    Corrupt,
    DiskFull,
    GraphNotFound,
    InvalidArgument,
    InvalidData,
    InvalidSchema,
    NewerFormat,
    OmnigraphError,
    PermissionDenied,
    TypeNotFound,
    UnsupportedChange,
)
from omnigraph.model.version import FORMAT
from omnigraph.store.versions import encode_version, version_key
from tests.contract.graphs import SCHEMA, begin, field, ids, people, write

FIVE_MISTAKES = """
node Person {
  name: Strin @key
  age: I32
  age: I64
}
node Person { x: String }
edge Knows: Person -> Persn
node Item { code: String?  @key(code) }
"""


def test_a_schema_with_five_mistakes_reports_five(root: str) -> None:
    with pytest.raises(InvalidSchema, match="The schema has 5 mistakes") as error:
        omnigraph.init(root, schema=FIVE_MISTAKES)
    assert len(error.value.diagnostics) == 5
    for word in ("Strin", "age", "Person", "Persn", "code"):
        assert word in str(error.value)
    with pytest.raises(GraphNotFound):
        omnigraph.open(root)


def test_a_wrong_schema_changes_nothing(g: Graph) -> None:
    people(g, "A")
    with pytest.raises(InvalidSchema, match="5 mistakes"):
        g.apply_schema(FIVE_MISTAKES)
    with pytest.raises(UnsupportedChange) as error:
        g.apply_schema(SCHEMA.replace("name: String @key", "name: String"))
    assert error.value.steps
    assert len(list(g.log())) == 2
    assert g.snapshot().schema == SCHEMA


ROWS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    # what: type, row, what the violation names, a piece of the message
    "wrong type": (
        "Person",
        {"name": "B", "age": "old"},
        {"rule": "type", "id": "B", "property": "age", "value": '"old"'},
        "`age` of Person must be",
    ),
    "out of the type's range": (
        "Person",
        {"name": "B", "age": 2**31},
        {"rule": "type", "id": "B", "property": "age", "value": str(2**31)},
        "`age` of Person",
    ),
    "missing key": ("Person", {"age": 1}, {"property": "name"}, "name"),
    "null key": ("Person", {"name": None}, {"property": "name"}, "name"),
    "missing required": (
        "Item",
        {"region": "r"},
        {"property": "number"},
        "number",
    ),
    "unknown property": (
        "Person",
        {"name": "B", "agee": 1},
        {"property": "agee"},
        "age",
    ),
    "enum outside the set": (
        "Person",
        {"name": "B", "mood": "sad"},
        {"rule": "enum", "id": "B", "property": "mood", "value": '"sad"'},
        "calm",
    ),
    "duplicate key": (
        "Person",
        {"name": "A"},
        {"rule": "key", "id": "A"},
        'Person "A" exists already',
    ),
    "missing endpoint": (
        "Knows",
        {"src": "A", "dst": "X"},
        {"rule": "endpoint", "id": '["A","X"]', "property": "to", "value": '"X"'},
        "no Person with that id",
    ),
    "vector of another size": (
        "Media",
        {"title": "m", "place": [1.0]},
        {"id": "m", "property": "place"},
        "place",
    ),
    "not a date": (
        "Media",
        {"title": "m", "day": "2024-02-30"},
        {"id": "m", "property": "day", "value": '"2024-02-30"'},
        "day",
    ),
    "a null in a list": (
        "Media",
        {"title": "m", "words": ["a", None]},
        {"property": "words"},
        "words",
    ),
}


def commit(tx: Transaction, statement: Callable[[], object]) -> None:
    statement()
    tx.publish()


@pytest.mark.parametrize("case", ROWS)
def test_a_bad_row_is_named_with_its_rule_and_changes_nothing(case: str, tmp_path: Path) -> None:
    kind, row, named, message = ROWS[case]
    with begin(str(tmp_path / "g")) as g:
        people(g, "A")
        tx = g.transaction()
        with pytest.raises(InvalidData) as error:
            commit(tx, lambda: tx.append(kind, row))
        first = error.value.violations[0]
        assert first.type == kind
        assert {name: getattr(first, name) for name in named} == named
        assert first.rule
        assert message in str(error.value)
        assert "Nothing was changed." in str(error.value)
        assert error.value.applied is False
        assert len(list(g.log())) == 2
        assert ids(g, "Person") == ["A"]
        assert g.snapshot().count(kind) == (1 if kind == "Person" else 0)


def test_the_same_key_twice_in_one_call_is_refused(g: Graph) -> None:
    twice = [{"name": "A"}, {"name": "A"}]
    for statement in ("append", "upsert", "overwrite"):
        tx = g.transaction()
        with pytest.raises(InvalidData, match="More than one row of Person has the id") as error:
            getattr(tx, statement)("Person", twice)
        assert error.value.violations[0].row == 1
    assert len(list(g.log())) == 1


def test_all_bad_rows_are_listed(g: Graph) -> None:
    given = [{"name": str(n), "age": "x"} for n in range(250)]
    with pytest.raises(InvalidData, match="249 more") as error:
        write(g, lambda tx: tx.append("Person", given))
    assert len(error.value.violations) == 100
    assert error.value.more == 150
    assert [v.row for v in error.value.violations[:3]] == [0, 1, 2]


WRONG_CALLS: dict[str, Callable[[Any, Any], object]] = {
    "rows that are a number": lambda g, tx: tx.append("Person", 42),
    "rows that are a text": lambda g, tx: tx.append("Person", "A"),
    "rows that are None": lambda g, tx: tx.append("Person", None),
    "a row that is no dict": lambda g, tx: tx.append("Person", [{"name": "B"}, 7]),
    "an unknown type": lambda g, tx: tx.append("Nobody", {"name": "B"}),
    "a type that is no text": lambda g, tx: tx.append(5, {"name": "B"}),
    "a filter that is text": lambda g, tx: tx.delete("Person", where="name = 'A'"),
    "a filter over nothing": lambda g, tx: tx.delete("Person", where=field("nope") == 1),
    "a filter that is no condition": lambda g, tx: tx.delete("Person", where=field("age")),
    "a filter of another type": lambda g, tx: tx.delete("Person", where=field("age") == "x"),
    "setting nothing": lambda g, tx: tx.update("Person", set={}, where=None),
    "setting the key": lambda g, tx: tx.update("Person", set={"name": "B"}, where=None),
    "setting the id": lambda g, tx: tx.update("Person", set={"id": "B"}, where=None),
    "setting the unknown": lambda g, tx: tx.update("Person", set={"agee": 1}, where=None),
    "setting a wrong type": lambda g, tx: tx.update("Person", set={"age": "x"}, where=None),
    "setting by nonsense": lambda g, tx: tx.update(
        "Person", set={"age": pc.add(field("name"), 1)}, where=None
    ),
    "setting by the unknown": lambda g, tx: tx.update(
        "Person", set={"age": field("x")}, where=None
    ),
    "setting by another type": lambda g, tx: tx.update(
        "Person", set={"age": field("name")}, where=None
    ),
    "scanning the unknown": lambda g, tx: tx.scan("Nobody"),
    "scanning unknown columns": lambda g, tx: tx.scan("Person", columns=["x"]),
    "scanning by text": lambda g, tx: tx.scan("Person", filter="agee = 1"),
    "a branch that is no text": lambda g, tx: g.branch(5).transaction().append("Note", {}),
    "a branch that is not there": lambda g, tx: g.branch("x").transaction().append("Note", {}),
    "a ref that is no text": lambda g, tx: g.at(5),
    "a schema that is no text": lambda g, tx: g.apply_schema(5),
    "a key that is no text": lambda g, tx: g.transaction(idempotency_key=5),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_a_wrong_call_is_told_in_our_words(case: str, tmp_path: Path) -> None:
    with begin(str(tmp_path / "g")) as g:
        people(g, "A")
        with pytest.raises(OmnigraphError) as error:
            WRONG_CALLS[case](g, g.transaction())
        assert isinstance(error.value, InvalidArgument | InvalidData | TypeNotFound) or (
            error.value.kind in ("not_found", "invalid")
        )
        assert len(error.value.message) > 15
        assert len(list(g.log())) == 2


# Roots and files that are not what they should be


def newest(g: Graph) -> Path:
    return Path(g.root) / version_key("main", g.snapshot().version)


def test_a_root_that_is_not_a_graph(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("hello")
    (tmp_path / "file").write_text("hello")
    for name in ("full", "file", "missing"):
        with pytest.raises(GraphNotFound, match="There is no graph at"):
            omnigraph.open(tmp_path / name)
    with pytest.raises(OmnigraphError, match="file"):
        omnigraph.init(tmp_path / "file", schema=SCHEMA)
    assert (tmp_path / "file").read_text() == "hello"


def test_a_graph_of_a_newer_format_by_its_stamp(tmp_path: Path) -> None:
    with begin(str(tmp_path / "g")):
        pass
    (tmp_path / "g" / "_graph.json").write_text(f'{{"format": {FORMAT + 1}, "new": []}}')
    for mode in ("r", "rw"):
        with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}.*Upgrade omnigraph first"):
            omnigraph.open(tmp_path / "g", mode=mode)
    (tmp_path / "g" / "_graph.json").write_text("{")
    with pytest.raises(Corrupt, match=r"_graph\.json"):
        omnigraph.open(tmp_path / "g")


def newer(g: Graph) -> None:
    """What a newer program would put next: a version that ours cannot know."""
    head = g.snapshot().graph_version
    made = msgspec.structs.replace(head, version=head.version + 1, format=FORMAT + 1, token="n")
    fields = msgspec.json.decode(encode_version(made)) | {"surprise": True}
    path = Path(g.root) / version_key("main", head.version + 1)
    path.write_bytes(msgspec.json.encode(fields))


def test_a_head_of_a_newer_format_is_neither_read_nor_written_over(tmp_path: Path) -> None:
    """Hazard 16: an open writer sees no stamp; the format is in every version."""
    with begin(str(tmp_path / "g")) as g:
        people(g, "A")
        pinned = g.snapshot()
        tx = g.transaction()
        tx.append("Note", {"text": "blind"})
        newer(g)
        for attempt in (tx.publish, g.snapshot, lambda: people(g, "B"), g.optimize):
            with pytest.raises(NewerFormat, match="Upgrade omnigraph first") as error:
                attempt()
            assert error.value.applied is False
        assert ids(pinned, "Person") == ["A"]
        assert len(list((tmp_path / "g" / "__manifest" / "main").iterdir())) == 3


@pytest.mark.parametrize("wide", [False, True], ids=["plain", "compressed"])
def test_a_truncated_or_damaged_graph_version_is_named(tmp_path: Path, wide: bool) -> None:
    types = "".join(f"node T{n} {{ x: String? }}\n" for n in range(40 if wide else 2))
    with begin(str(tmp_path / "g"), types) as g:
        write(g, lambda tx: tx.append("T0", {"x": "y"}))
        path = newest(g)
        whole = path.read_bytes()
    assert (whole[4:8] == b"\x28\xb5\x2f\xfd") == wide
    damages = [whole[:size] for size in (0, 1, 5, 9, len(whole) // 2, len(whole) - 1)]
    damages += [b"[]", b"null", b"{}", b'{"format": "x"}', b"\xff\xfe", whole[:-9] + b"\xff" * 9]
    for data in damages:
        path.write_bytes(data)
        with omnigraph.open(tmp_path / "g") as g:
            with pytest.raises(Corrupt, match=path.name):
                g.snapshot()
            with pytest.raises(Corrupt, match=path.name):
                write(g, lambda tx: tx.append("T0", {}))
    path.write_bytes(whole)
    with omnigraph.open(tmp_path / "g") as g:
        assert g.snapshot().count("T0") == 1


def test_a_version_under_another_name_is_damage(tmp_path: Path) -> None:
    with begin(str(tmp_path / "g")) as g:
        people(g, "A")
        path = newest(g)
        (path.parent / Path(version_key("main", 3)).name).write_bytes(path.read_bytes())
    with omnigraph.open(tmp_path / "g") as g, pytest.raises(Corrupt, match="holds version 2"):
        g.snapshot()


def parts(g: Graph, pattern: str) -> list[Path]:
    location = g.snapshot().graph_version.pins["node:Person"].location
    return sorted((Path(g.root) / location).glob(pattern))


def spoilt(path: Path, how: str) -> None:
    match how:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("how", ["missing", "empty", "cut"])
@pytest.mark.parametrize("what", ["data/*", "_versions/d*", "_deletions/*"])
def test_a_missing_or_damaged_file_of_a_table_is_named(tmp_path: Path, what: str, how: str) -> None:
    with begin(str(tmp_path / "g")) as g:
        people(g, *map(str, range(30)))
        write(g, lambda tx: tx.delete("Person", where=field("name") == "3"))
        for path in parts(g, what):
            spoilt(path, how)
        location = g.snapshot().graph_version.pins["node:Person"].location
    with omnigraph.open(tmp_path / "g") as g:
        for attempt in (
            lambda: g.snapshot().scan("Person").read_all(),
            lambda: write(g, lambda tx: tx.upsert("Person", {"name": "1", "age": 1})),
            lambda: write(g, lambda tx: tx.update("Person", set={"age": 1}, where=None)),
        ):
            with pytest.raises(Corrupt, match=location) as error:
                attempt()
            assert error.value.applied is False
            assert "Restore the file from a copy" in str(error.value)
        write(g, lambda tx: tx.append("Note", {"text": "the rest still works"}))


@pytest.mark.parametrize("what", ["*.json", "*.pg"])
def test_a_missing_or_changed_schema_is_damage(tmp_path: Path, what: str) -> None:
    with begin(str(tmp_path / "g")):
        pass
    (path,) = (tmp_path / "g" / "_schema").glob(what)
    for spoil in (lambda: path.write_bytes(b"x"), path.unlink):
        spoil()
        with omnigraph.open(tmp_path / "g") as g, pytest.raises(Corrupt, match=path.name):
            _ = g.snapshot().schema


@contextmanager
def nobody() -> Iterator[None]:
    """As a user without rights; everybody else's rights are what is tested."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that everybody may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        place = Path(name)
        place.chmod(0o777)
        yield place


def test_a_place_where_nothing_may_be_written(open_place: Path) -> None:
    with begin(str(open_place / "g")) as g:
        people(g, "A")
    for path in [open_place / "g", *(open_place / "g").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    with nobody(), omnigraph.open(open_place / "g") as g:
        assert ids(g, "Person") == ["A"]
        for attempt in (
            lambda: people(g, "B"),
            lambda: write(g, lambda tx: tx.delete("Person", where=None)),
            lambda: g.create_branch("side"),
            lambda: g.apply_schema(SCHEMA + "node New { x: String? }\n"),
        ):
            with pytest.raises(PermissionDenied, match="No permission") as error:
                attempt()
            assert error.value.applied is False
    with omnigraph.open(open_place / "g") as g:
        assert len(list(g.log())) == 2
        assert ids(g, "Person") == ["A"]
    with nobody():
        (open_place / "shut").mkdir(mode=0o555)
        with pytest.raises(PermissionDenied, match="No permission"):
            omnigraph.init(open_place / "shut" / "g", schema=SCHEMA)


@pytest.mark.parametrize("shut", [".", "__manifest", "__manifest/main", "_graph.json", "nodes"])
def test_a_graph_that_may_not_be_read(open_place: Path, shut: str) -> None:
    with begin(str(open_place / "g")) as g:
        people(g, "A")
    (open_place / "g" / shut).chmod(0)
    with nobody(), pytest.raises(PermissionDenied, match="No permission"):
        ids(omnigraph.open(open_place / "g"), "Person")


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of its own with little room."""
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={size}".encode()
    if libc.mount(b"tmpfs", str(place).encode(), b"tmpfs", 0, options) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    try:
        yield place
    finally:
        libc.umount2(str(place).encode(), 2)


def fill(place: Path) -> None:
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def can_mount() -> bool:
    """Whether this user may have file systems of its own: root outside of most containers."""
    effective = next(
        line.split()[1]
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("CapEff")
    )
    return bool(int(effective, 16) & 1 << 21)  # CAP_SYS_ADMIN


def test_a_full_disk_leaves_the_graph_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if can_mount():
        with small_disk(tmp_path / "disk", "4m") as place:
            _check_full_disk(place, lambda: fill(place), (place / "filler").unlink)
    else:  # then the system calls fail as they would
        from omnigraph.store import disk

        def full(*given: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path))

        _check_full_disk(
            tmp_path, lambda: monkeypatch.setattr(disk, "_write", full), monkeypatch.undo
        )


def _check_full_disk(place: Path, fill: Callable[[], object], free: Callable[[], object]) -> None:
    with begin(str(place / "g")) as g:
        people(g, "A")
        fill()
        for attempt in (
            lambda: people(g, "B"),
            lambda: write(g, lambda tx: tx.update("Person", set={"age": 1}, where=None)),
            lambda: g.apply_schema(SCHEMA + "node New { x: String? }\n"),
            lambda: g.create_branch("side"),
        ):
            with pytest.raises(DiskFull, match="No space is left") as error:
                attempt()
            assert error.value.applied is False
        assert ids(g, "Person") == ["A"]
        free()
        people(g, "B")
        assert ids(g, "Person") == ["A", "B"]
    with omnigraph.open(place / "g") as g:
        assert [c.kind for c in g.log()] == ["write", "write", "init"]


def test_an_error_can_be_shown_as_data(g: Graph) -> None:
    with pytest.raises(InvalidData) as error:
        write(g, lambda tx: tx.append("Person", {"name": "A", "age": "x"}))
    shown = error.value.to_dict()
    assert shown["code"] == "invalid_data"
    assert shown["retryable"] is False
    assert Conflict.retryable


def test_rows_whose_columns_repeat_or_have_no_names(g: Graph) -> None:
    table = pa.table([pa.array(["A"]), pa.array(["B"])], names=["name", "name"])
    for given in (table, [{1: "A"}], [{"name": object()}], [{"name": b"\xff"}]):
        with pytest.raises(InvalidData):
            write(g, lambda tx, given=given: tx.append("Person", given))  # type: ignore[misc]
    assert len(list(g.log())) == 1
