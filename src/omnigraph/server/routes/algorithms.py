"""Owns the route that computes a value for each node. One that writes its values is a job."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from omnigraph.engine.algorithms.result import AlgorithmResult
from omnigraph.engine.graph import Graph
from omnigraph.server.answers import about, answer
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.wire.columns import columns_of, json_rows
from omnigraph.wire.media import ARROW, accepts
from omnigraph.wire.rows import lineage_of
from omnigraph.wire.streams import ArrowWriter

router = APIRouter(prefix="/graphs/{graph}", tags=["algorithms"], route_class=StrictRoute)


class AlgorithmBody(RequestBody):
    """`edges` are edge types, or each with its direction; `where` has conditions by type."""

    name: str
    edges: str | list[str] | dict[str, str] | None = None
    direction: Literal["out", "in", "both"] | None = None
    where: str | dict[str, str] | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    def words(self) -> dict[str, Any]:
        given = {"edges": self.edges, "direction": self.direction, "where": self.where}
        return given | self.options | {"engine": "local"}


class AskedAlgorithm(AlgorithmBody):
    ref: str = "main"


class WrittenAlgorithm(AlgorithmBody):
    """`write_to` is the property of the nodes that gets the values."""

    write_to: str
    branch: str = "main"
    message: str | None = None


@router.post("/algorithm")
async def algorithm(call: TheCall, body: AskedAlgorithm) -> Response:
    """A value for each node: `type`, `id` and `value`, as JSON or as Arrow."""

    def compute(graph: Graph) -> tuple[str, int, pa.Table]:
        snapshot = graph.at(body.ref)
        done = snapshot.algorithm(body.name, **body.words())
        return snapshot.commit.id, done.rounds, done.to_arrow()

    commit, rounds, table = await call.job(compute)
    headers = about(commit) | {"Omnigraph-Rounds": str(rounds)}
    if accepts(call.request.headers.get("accept"), ARROW):
        writer = ArrowWriter(table.schema)
        data = [writer.begin(), *map(writer.write, table.to_batches()), writer.end()]
        return Response(b"".join(data), media_type=ARROW, headers=headers)
    rows = [row for batch in table.to_batches() for row in json_rows(batch)]
    told = {"columns": columns_of(table.schema), "rows": rows, "ref": body.ref}
    return answer(told | {"commit": commit, "rounds": rounds}, commit, headers=headers)


@router.post("/algorithm/write")
async def write_algorithm(call: TheCall, body: WrittenAlgorithm) -> Response:
    """Makes the values a property of the nodes, as one commit."""
    words = call.words(body.message)

    def write(graph: Graph) -> AlgorithmResult:
        branch = graph.branch(body.branch)
        return branch.algorithm(body.name, write_to=body.write_to, **body.words(), **words)

    done = await call.job(write)
    commit = None if done.commit is None else done.commit.id
    told = {"branch": body.branch, "commit": commit, "rounds": done.rounds}
    return answer(told | {"lineage": lineage_of(done.commit)}, commit)
