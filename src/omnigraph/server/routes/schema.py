"""Owns the routes of the schema: its text, what a change would do, and the change."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from omnigraph.engine.snapshot import Snapshot
from omnigraph.server.answers import answer, pin_of, read_at
from omnigraph.server.bodies import RequestBody, Types, only_text
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.wire.rows import commit_record, lineage_of, plan_record, type_row

router = APIRouter(prefix="/graphs/{graph}/schema", tags=["schema"], route_class=StrictRoute)


class PlanBody(RequestBody):
    schema_: str = Field(alias="schema")
    ref: str = "main"


class ApplyBody(RequestBody):
    schema_: str = Field(alias="schema")
    branch: str = "main"
    message: str | None = None
    allow_data_loss: bool = False


@router.get("")
async def schema(call: TheCall, ref: str = "main") -> Response:
    """The text of the schema, and its types as they were understood."""

    def told(snapshot: Snapshot) -> dict[str, Any]:
        return {
            "ref": ref,
            "commit": snapshot.commit.id,
            "schema": snapshot.schema,
            "digest": snapshot.graph_version.schema,
            "pin": pin_of(snapshot),
            "lineage": commit_record(snapshot.commit),
            "types": [type_row(kind) for kind in snapshot.catalog.types],
        }

    return await read_at(call, ref, told)


@router.get("/summary")
async def summary(
    call: TheCall, ref: str = "main", characters: int = 8_000, type: Types = None
) -> Response:
    """The schema in few characters, for the context of a model."""
    return await read_at(
        call,
        ref,
        lambda at: {
            "ref": ref,
            "commit": at.commit.id,
            "text": at.describe(types=type, characters=characters),
        },
    )


@router.post("/plan")
async def plan(call: TheCall, body: PlanBody) -> Response:
    """What applying a schema would do, step by step."""
    return await read_at(
        call, body.ref, lambda at: plan_record(at.plan_schema(only_text(body.schema_)))
    )


@router.post("/apply")
async def apply_(call: TheCall, body: ApplyBody) -> Response:
    """Makes a schema the accepted one, as one commit."""
    words = call.words(body.message)
    done = await call.write(
        lambda g: g.branch(body.branch).apply_schema(
            only_text(body.schema_), allow_data_loss=body.allow_data_loss, **words
        )
    )
    commit = None if done.commit is None else done.commit.id
    row = {
        "applied": done.applied,
        "branch": body.branch,
        "commit": commit,
        "plan": plan_record(done.plan),
        "repeated": done.repeated,
        "lineage": lineage_of(done.commit),
    }
    return answer(row, commit, io=done.io)
