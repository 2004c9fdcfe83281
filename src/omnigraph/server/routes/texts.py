"""Owns the routes for editors: how a query is answered, and what is wrong with a text."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.engine.snapshot import Snapshot
from omnigraph.lang.diagnostics import Source
from omnigraph.lang.pg import compile_schema, parse_schema
from omnigraph.lang.pg.format import format_schema
from omnigraph.lang.pg.lint import lint_schema
from omnigraph.server.answers import answer, read_at
from omnigraph.server.bodies import QueryText, RequestBody
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}", tags=["editors"], route_class=StrictRoute)


class ExplainBody(QueryText):
    """With `analyze` the query runs, and each step tells what it did."""

    ref: str = "main"
    analyze: bool = False


class CheckBody(RequestBody):
    text: str
    language: Literal["gq", "pg"] = "gq"
    ref: str = "main"


@router.post("/explain")
async def explain(call: TheCall, body: ExplainBody) -> Response:
    """How a query is answered, step by step."""
    limits = call.service.limits

    def told(snapshot: Snapshot) -> dict[str, Any]:
        asked = snapshot.query(
            body.query,
            body.name,
            body.params,
            timeout=limits.timeout,
            memory_limit=limits.query_memory,
        )
        return {
            "ref": body.ref,
            "commit": snapshot.commit.id,
            "plan": asked.explain(analyze=body.analyze),
        }

    return await read_at(call, body.ref, told)


@router.post("/check")
async def check(call: TheCall, body: CheckBody) -> Response:
    """Every mistake in a text with its place, the queries in it, the text in the one style, and
    what was probably meant, where that can be known."""
    if body.language == "pg":
        return answer(await call.read(lambda _: _check_schema(body.text)))
    return await read_at(call, body.ref, lambda at: plain(at.check(body.text)))


def _check_schema(text: str) -> dict[str, Any]:
    found = compile_schema(text).diagnostics or lint_schema(parse_schema(text).tree)
    source = Source(text)
    return {
        "diagnostics": [plain(source.locate(one)) for one in found],
        "queries": [],
        "formatted": format_schema(text).text,
        "corrected": None,
    }
