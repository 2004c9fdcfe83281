"""Wrong types of arguments, over every public method by its signature: an error of ours that names
the argument; never what an inner module stumbled over."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.blob import Blob
from omnigraph.engine.history.log import LogWords
from omnigraph.engine.upkeep.jobs import GraphJobs
from omnigraph.engine.upkeep.recovery import Recovery
from omnigraph.errors import InvalidArgument, OmnigraphError
from omnigraph.model.caller import Caller
from omnigraph.model.options import CommitWords
from omnigraph.settings import Settings
from tests.hostile.world import JOB, SETTINGS, build_graph

WRONG: tuple[Any, ...] = (
    "x",
    "\udcff",
    "",
    -1,
    2**70,
    float("nan"),
    float("inf"),
    b"\xff",
    object(),
    [],
    {},
    (1, 2),
    {"x": object()},
    True,
    None,
    3.5,
    ["a", 1],
)
GOOD: dict[str, Any] = {
    "ref": "main",
    "old": "main~1",
    "new": "main",
    "type": "Person",
    "id": "a",
    "property": "photo",
    "text": "match { $p: Person } return { $p.name }",
    "name": "side",
    "branch": "main",
    "source": "side",
    "schema": "node Person { name: String @key }",
    "commit": "main",
}
TEXTS = {"mutate": 'insert Note { text: "x" }', "search": "a"}
NAMED: dict[tuple[str, str], Any] = {
    ("acting", "caller"): Caller("ada"),
    ("store_queries", "queries"): {"more": GOOD["text"]},
    ("run_query", "name"): "people",
    ("run_query", "parameters"): {"age": 1},
    ("submit", "kind"): "verify",
    **{(method, "id"): JOB for method in ("get", "cancel", "events")},
    ("algorithm", "name"): "degrees",
    ("create_branch", "name"): "fresh",
    ("load", "source"): [{"type": "Note", "text": "x"}],
    ("update", "set"): {"age": 5},
    ("update", "where"): 'name = "a"',
    ("delete", "where"): 'name = "none"',
    ("append", "type"): "Note",
    ("overwrite", "type"): "Note",
}
ROWS = [{"name": "d"}]
SKIPPED = {"close", "copy", "spark", "stream_writer", "run"}
"""Those of Spark start a JVM; `run` calls what it is given."""
INNER = {"begin", "beat", "end", "view"}
"""Between modules of ours only: they take values of the engine."""
READS_ON = {"follow"}
WORDS: dict[Any, Any] = {"Unpack[CommitWords]": CommitWords, "Unpack[LogWords]": LogWords}
OWNERS: dict[str, tuple[type, Callable[[Graph], Any]]] = {
    "graph": (Graph, lambda g: g),
    "branch": (omnigraph.Branch, lambda g: g.branch("main")),
    "snapshot": (omnigraph.Snapshot, lambda g: g.snapshot()),
    "transaction": (omnigraph.Transaction, lambda g: g.transaction()),
    "savepoint": (omnigraph.Savepoint, lambda g: g.transaction().savepoint()),
    "result": (omnigraph.Result, lambda g: g.query(GOOD["text"])),
    "recovery": (Recovery, lambda g: g.recovery),
    "jobs": (GraphJobs, lambda g: g.jobs),
    "blob": (Blob, lambda g: g.blob("Person", "a", "photo")),
}


def public_methods(of: type) -> Iterator[tuple[str, list[inspect.Parameter]]]:
    for name, member in inspect.getmembers(of, inspect.isfunction):
        if not name.startswith("_") and name not in SKIPPED | INNER:
            yield name, parameters_of(member)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """With the words that come as keywords, such as those of every commit."""
    found = []
    for one in inspect.signature(function).parameters.values():
        if one.annotation in WORDS:
            found += [
                inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=None)
                for word in WORDS[one.annotation].__annotations__
            ]
        elif one.name != "self" and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            found.append(one)
    return found


def good(method: str, parameter: str) -> Any:
    if parameter == "text":
        return TEXTS.get(method, GOOD["text"])
    if parameter == "rows":
        return [{"text": "y"}] if method in ("append", "overwrite") else ROWS
    return NAMED.get((method, parameter), GOOD.get(parameter))


CASES = [
    (owner, method, parameter.name)
    for owner, (of, _) in OWNERS.items()
    for method, parameters in public_methods(of)
    for parameter in parameters
    if parameter.name not in READS_ON
]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("arguments") / "graph"
    build_graph(root)
    return root


@pytest.fixture
def graph(pristine: Path, tmp_path: Path) -> Iterator[Graph]:
    """Its own for each test: some of them delete branches, and change the schema."""
    shutil.copytree(pristine, tmp_path / "graph")
    with omnigraph.open(tmp_path / "graph", settings=SETTINGS) as g:
        yield g


def consume(found: Any) -> None:
    """What reads when it is iterated has to be, or nothing has been asked."""
    for name in ("to_pylist", "to_arrow", "read_all"):
        if hasattr(found, name):
            getattr(found, name)()
            return
    if isinstance(found, Iterator):
        for _, _ in zip(range(5), found, strict=False):
            pass
    elif hasattr(found, "__enter__") and hasattr(found, "append"):
        with found as tx:
            tx.append("Note", {"text": "y"})


def required(method: str, parameters: list[inspect.Parameter], but: str) -> dict[str, Any]:
    return {
        parameter.name: good(method, parameter.name)
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.name != but
    }


def test_the_table_has_every_method_that_takes_something() -> None:
    asked = {(owner, method) for owner, method, _ in CASES}
    assert {("snapshot", "scan"), ("snapshot", "search"), ("branch", "embed")} <= asked
    assert {("transaction", "update"), ("transaction", "query"), ("graph", "embed")} <= asked
    assert ("branch", "mutate", "retry_for") in CASES
    assert ("blob", "read", "offset") in CASES
    assert ("jobs", "submit", "arguments") in CASES


@pytest.mark.parametrize(("owner", "method", "parameter"), CASES)
def test_a_wrong_type_of_an_argument_is_told(
    graph: Graph,
    owner: str,
    method: str,
    parameter: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    of, make = OWNERS[owner]
    parameters = parameters_of(getattr(of, method))
    for value in WRONG:
        given = required(method, parameters, parameter) | {parameter: value}
        if method == "export" and parameter != "to":
            given["to"] = _Sink()
        if parameter == "to" and value == "x":
            continue  # a file, as it may be
        if parameter == "where" and value is None and method == "delete":
            continue  # everything, as it may be

        def use(given: dict[str, Any] = given) -> None:
            consume(getattr(make(graph), method)(**given))

        told(use, parameter, value)


DATA = {"rows", "source"}
"""These are data: what is wrong with them is told as for any data, without the word."""


@pytest.mark.parametrize(("owner", "method", "parameter"), CASES)
def test_the_argument_that_is_wrong_is_named(
    graph: Graph, owner: str, method: str, parameter: str
) -> None:
    of, make = OWNERS[owner]
    given = required(method, parameters_of(getattr(of, method)), parameter) | {parameter: object()}
    with pytest.raises(OmnigraphError) as told:
        consume(getattr(make(graph), method)(**given))
    if parameter not in DATA:
        assert isinstance(told.value, InvalidArgument), told.value
        assert parameter in told.value.message


class _Sink:
    def write(self, data: bytes) -> int:
        return len(data)

    def flush(self) -> None:
        pass


def told(call: Callable[[], object], parameter: str, value: object) -> None:
    """It works, or it fails as our own error does."""
    message = ""
    try:
        call()
    except OmnigraphError as error:
        message = str(error)
    assert "bug" not in message, (parameter, value, message)
    assert "Traceback" not in message, (parameter, value, message)


SETTING_FIELDS = sorted(Settings.__dataclass_fields__)


@pytest.mark.parametrize("name", SETTING_FIELDS)
def test_a_wrong_type_of_a_setting_is_told(name: str, tmp_path: Path) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, schema="node P { name: String @key }", settings=SETTINGS).close()
    for value in WRONG:

        def use(value: Any = value) -> None:
            with omnigraph.open(root, settings=Settings(**{name: value})) as g:
                g.mutate('insert P { name: "x" }')
                g.mutate('delete P where name = "x"')

        told(use, name, value)


@pytest.mark.parametrize("function", ["open", "init", "copy"])
def test_wrong_types_of_what_a_graph_is_opened_with_are_told(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    called = getattr(omnigraph, function)
    signature = inspect.signature(called)
    for parameter in signature.parameters.values():
        if parameter.name in ("runtime", "progress"):
            continue
        for number, value in enumerate(WRONG):
            given = {
                "root": tmp_path / f"{parameter.name}{number}",
                "src": tmp_path / "none",
                "dst": tmp_path / "target",
                "schema": "node P { name: String @key }",
            }
            held = {n: v for n, v in given.items() if n in signature.parameters}

            def use(held: dict[str, Any] = held | {parameter.name: value}) -> None:
                called(**held)

            told(use, parameter.name, value)
