"""Every request that the description allows is answered as it says, and what it does not allow is
refused in the same words: drawn from docs/user/openapi.json, sent to a server that runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok

from omnigraph.server.graphs import Graphs
from omnigraph.server.service import Service
from tests.docs.examples import make_graph
from tests.server.serving import Answer, Site, serving

KEPT = Path(__file__).parents[2] / "docs" / "user" / "openapi.json"
DESCRIBED = json.loads(KEPT.read_text())
SCHEMA = schemathesis.openapi.from_dict(DESCRIBED)
OPERATIONS: list[Any] = [one.ok() for one in SCHEMA.get_all_operations() if isinstance(one, Ok)]
OTHERS = frozenset({"/reload", "/graphs/{graph}/mcp"})
"""What is about the process itself, and where another protocol answers."""


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("fuzzed") / "people"
    make_graph(str(root)).close()
    with serving(Service(Graphs({"people": str(root)}))) as found:
        yield found


def test_the_description_has_every_route() -> None:
    assert len(OPERATIONS) > 60
    assert {"/graphs/{graph}/queries", "/graphs/{graph}/jobs"} <= set(DESCRIBED["paths"])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.label)
def test_whatever_is_drawn_is_answered_by_the_rules(fuzzed: Site, operation: Any) -> None:
    statuses: Counter[int] = Counter()

    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), named=st.booleans())
    def ask(case: Any, named: bool) -> None:
        if operation.path in OTHERS:
            return
        if named and "graph" in case.path_parameters:
            case.path_parameters["graph"] = "people"
        if operation.path.endswith("/changes"):
            case.query = {k: v for k, v in (case.query or {}).items() if k != "wait"}
        if operation.method.upper() == "DELETE" and operation.path == "/graphs/{graph}":
            return
        answer = case.call(base_url=fuzzed.url, timeout=30, headers={"Accept": "*/*"})
        statuses[answer.status_code] += 1
        told = Answer(answer.status_code, answer.headers, answer.content)
        assert answer.status_code < 500 or answer.status_code in (503, 504), told.body
        assert b"Traceback" not in told.body
        if answer.status_code >= 400 and operation.method.upper() != "HEAD":
            kind = told.headers["content-type"]
            kind = kind[0] if isinstance(kind, list) else kind
            assert kind == "application/problem+json"
            problem = json.loads(told.body)
            assert problem["status"] == answer.status_code
            assert problem["type"] == f"urn:omnigraph:{problem['code']}"
            assert str(fuzzed.service.graphs.roots()["people"]) not in told.body.decode()

    ask()
    assert statuses or operation.path in OTHERS or operation.path == "/graphs/{graph}"
