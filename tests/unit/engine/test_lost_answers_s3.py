"""Lost answers on a real S3 server: connections cut before and after the effect, and hangs."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, Settings
from omnigraph.errors import OmnigraphError, OutcomeUnknown
from tests.bench.proxy import Proxy, Rule
from tests.bench.s3 import S3Server
from tests.conftest import use_environment
from tests.unit.engine.faulty import SCHEMA

pytestmark = pytest.mark.s3
SETTINGS = Settings(request_timeout=2.0, queue=False)
# What a write asks of the store: its data file, its transaction, its table version, its version.
CLASSES: list[Any] = ["data", "transaction", "table_version", "version"]


@pytest.fixture
def graphs(
    proxied_root: str, proxy: Proxy, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> tuple[Graph, Graph]:
    """A handle through the proxy, warm, and one past it that sees the truth."""
    faulty = omnigraph.init(proxied_root, schema=SCHEMA, settings=SETTINGS)
    with faulty.transaction() as tx:
        tx.append("Note", {"id": "first"})
    use_environment(monkeypatch, s3_server.env())
    return faulty, omnigraph.open(proxied_root, settings=SETTINGS)


def notes(g: Graph) -> list[str]:
    return sorted(g.snapshot().scan("Note").read_all()["id"].to_pylist())


def put(g: Graph, name: str) -> OmnigraphError | None:
    try:
        with g.transaction() as tx:
            tx.append("Note", {"id": name, "text": "x"})
    except OmnigraphError as error:
        return error
    return None


ONCE: dict[str, dict[str, Any]] = {
    "cut before the effect": {"action": "drop_before"},
    "cut after the effect": {"action": "drop_after"},
    "busy": {"action": "status", "status": 503},
    "conflict with nothing stored": {"action": "status", "status": 409},
    "hangs before the effect": {"action": "hang_before", "seconds": 4.0},
    "hangs after the effect": {"action": "hang_after", "seconds": 4.0},
    "lands late": {"action": "land_late", "seconds": 0.05},
}


@pytest.mark.parametrize("how", ONCE)
def test_one_lost_answer_of_the_put_is_nothing_that_a_caller_hears_of(
    graphs: tuple[Graph, Graph], proxy: Proxy, how: str
) -> None:
    faulty, honest = graphs
    with proxy.rules(Rule(verb="PUT", key_class="version", **ONCE[how])):
        assert put(faulty, "second") is None
    assert notes(honest) == ["first", "second"]
    assert [c.kind for c in honest.log()] == ["write", "write", "init"]
    assert put(faulty, "third") is None
    assert notes(honest) == ["first", "second", "third"]


@pytest.mark.parametrize("how", ["cut before the effect", "cut after the effect", "busy"])
def test_when_the_store_is_gone_from_the_put_on_nobody_can_tell(
    graphs: tuple[Graph, Graph], proxy: Proxy, how: str
) -> None:
    faulty, honest = graphs
    gone = [
        Rule(verb="PUT", key_class="version", times=None, **ONCE[how]),
        Rule(verb="GET", key_class="version", nth=1, times=None, action="drop_before"),
    ]
    with proxy.rules(*gone):
        error = put(faulty, "second")
    assert isinstance(error, OutcomeUnknown)
    assert error.applied is None
    landed = error.commit in {commit.id for commit in honest.log()}
    assert landed == (how == "cut after the effect")
    assert notes(honest) == (["first", "second"] if landed else ["first"])
    assert put(faulty, "third") is None
    assert notes(honest)[-1] == "third"


@pytest.mark.parametrize("key_class", CLASSES[:3])
@pytest.mark.parametrize("how", ["cut before the effect", "cut after the effect", "busy"])
def test_any_other_request_that_fails_leaves_the_write_whole_or_unmade(
    graphs: tuple[Graph, Graph], proxy: Proxy, how: str, key_class: Any
) -> None:
    faulty, honest = graphs
    with proxy.rules(Rule(verb="PUT", key_class=key_class, **ONCE[how])):
        error = put(faulty, "second")
    if error is None:
        assert notes(honest) == ["first", "second"]
    else:
        assert error.applied is False
        assert notes(honest) == ["first"]
    assert put(faulty, "third") is None
    assert "third" in notes(honest)


def test_a_repeated_call_after_an_unknown_outcome_lands_once(
    graphs: tuple[Graph, Graph], proxy: Proxy
) -> None:
    faulty, honest = graphs
    gone = [
        Rule(verb="PUT", key_class="version", times=None, action="drop_after"),
        Rule(verb="GET", key_class="version", nth=2, times=None, action="drop_before"),
    ]
    with proxy.rules(*gone), pytest.raises(OutcomeUnknown):
        _keyed(faulty, "key")
    assert _keyed(faulty, "key") is True
    assert honest.snapshot().count("Note") == 2


def _keyed(g: Graph, key: str) -> bool:
    with g.transaction(idempotency_key=key) as tx:
        tx.append("Note", {"text": key})
    return tx.repeated
