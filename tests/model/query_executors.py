"""Owns who answers queries in tests of reads: the oracle, and the engine beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from omnigraph.lang.diagnostics import render_all
from omnigraph.lang.gq import CheckedQuery, bind_parameters, compile_query
from tests.model.query_data import Dataset
from tests.model.query_oracle import Answer, evaluate
from tests.model.query_results import shown_rows

Parameters = Mapping[str, Any]


class Refused(Exception):
    """The text was not accepted; `codes` say why."""

    def __init__(self, codes: tuple[str, ...], shown: str) -> None:
        super().__init__(shown)
        self.codes = codes


class Executor(Protocol):
    """Answers queries over one dataset. Raises `Refused` for a text that does not check, and any
    other error for one that fails while it runs."""

    def run(self, text: str, parameters: Parameters) -> list[dict[str, Any]]: ...

    def close(self) -> None: ...


def compiled(data: Dataset, text: str) -> CheckedQuery:
    result = compile_query(text, data.catalog)
    if result.query is None:
        codes = tuple(d.code for d in result.diagnostics)
        raise Refused(codes, render_all(result.diagnostics, text))
    return result.query


def expected_answer(data: Dataset, query: CheckedQuery, parameters: Parameters) -> Answer:
    return evaluate(query, data.world(), bind_parameters(query, parameters))


class OracleExecutor:
    def __init__(self, data: Dataset) -> None:
        self.data = data

    def run(self, text: str, parameters: Parameters) -> list[dict[str, Any]]:
        answer = expected_answer(self.data, compiled(self.data, text), parameters)
        return shown_rows(answer, answer.final())

    def close(self) -> None:
        """There is nothing to close."""
