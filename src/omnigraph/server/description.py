"""Owns the description of all routes (OpenAPI), made from the routes themselves."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from fastapi.openapi.utils import get_openapi

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code", "error", "retryable", "applied"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "error": {"type": "string"},
        "help": {"type": "string"},
        "retryable": {"type": "boolean"},
        "applied": {"type": ["boolean", "null"]},
        "request_id": {"type": ["string", "null"]},
    },
}


def make_description() -> dict[str, Any]:
    from omnigraph.server.app import make_api

    api = make_api()
    told: dict[str, Any] = get_openapi(title=api.title, version="1", routes=api.routes)
    told.setdefault("components", {}).setdefault("schemas", {})["Problem"] = _PROBLEM
    told["components"]["schemas"].pop("HTTPValidationError", None)
    told["components"]["schemas"].pop("ValidationError", None)
    for operations in told["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {
                "description": "What went wrong.",
                "content": {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                },
            }
    return told


@cache
def description() -> bytes:
    """As it is served, and as it is kept in docs/user/openapi.json."""
    return msgspec.json.format(msgspec.json.encode(make_description(), order="sorted"), indent=2)
