"""Wrong types of arguments, over every public method by its signature: an error of ours that names
the argument; never what an inner module stumbled over."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.settings import Settings
from tests.hostile.world import SETTINGS, build_graph

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
TEXTS = {"mutate": 'insert Note { text: "x" }'}
SKIPPED = {"close", "copy", "spark", "stream_writer", "run"}
"""Those of Spark start a JVM; `run` calls what it is given."""
READS_ON = {"follow"}


def public_methods(of: type) -> Iterator[tuple[str, inspect.Signature]]:
    for name, member in inspect.getmembers(of, inspect.isfunction):
        if not name.startswith("_") and name not in SKIPPED:
            yield name, inspect.signature(member)


def good(method: str, parameter: str) -> Any:
    if parameter == "text":
        return TEXTS.get(method, GOOD["text"])
    if method == "algorithm" and parameter == "name":
        return "degrees"
    if method == "create_branch" and parameter == "name":
        return "fresh"
    if method == "load" and parameter == "source":
        return [{"type": "Note", "text": "x"}]
    return GOOD.get(parameter)


CASES = [
    (owner, method, parameter.name)
    for owner in (Graph, omnigraph.Branch if hasattr(omnigraph, "Branch") else Graph)
    for method, signature in public_methods(owner)
    for parameter in signature.parameters.values()
    if parameter.name != "self"
    and parameter.name not in READS_ON
    and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    root = tmp_path_factory.mktemp("arguments") / "graph"
    build_graph(root)
    with omnigraph.open(root, settings=SETTINGS) as g:
        yield g


def consume(found: Any) -> None:
    """What reads when it is iterated has to be, or nothing has been asked."""
    for name in ("to_pylist", "to_arrow"):
        if hasattr(found, name):
            getattr(found, name)()
            return
    if isinstance(found, Iterator):
        for _, _ in zip(range(5), found, strict=False):
            pass
    elif hasattr(found, "__enter__") and hasattr(found, "append"):
        with found as tx:
            tx.append("Note", {"text": "y"})


def required(method: str, signature: inspect.Signature, but: str) -> dict[str, Any]:
    return {
        parameter.name: good(method, parameter.name)
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.name not in ("self", but)
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }


@pytest.mark.parametrize(
    ("method", "parameter"),
    sorted({(method, parameter) for _, method, parameter in CASES}),
)
def test_a_wrong_type_of_an_argument_is_told(
    graph: Graph, method: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    signature = inspect.signature(getattr(Graph, method))
    for value in WRONG:
        given = required(method, signature, parameter) | {parameter: value}
        if method == "export" and parameter != "to":
            given["to"] = _Sink()
        if parameter == "to" and value == "x":
            continue  # a file, as it may be

        def use(given: dict[str, Any] = given) -> None:
            consume(getattr(graph, method)(**given))

        told(use, parameter, value)


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
