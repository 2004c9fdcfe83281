"""Owns what bodies of requests have in common: no unknown name, no value of another type."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class RequestBody(BaseModel):
    """A JSON object with the names that it declares, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class QueryText(RequestBody):
    """A text of the query language with its parameters."""

    query: str
    name: str | None = None
    params: dict[str, Any] | None = None


def only_text(schema: str) -> str:
    """The engine also takes the path of a file, which is one line: no client may name one."""
    return schema if "\n" in schema else f"{schema}\n"
