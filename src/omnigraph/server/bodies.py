"""Owns what requests have in common: bodies without unknown names, and how changes are chosen."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict

Types = Annotated[list[str] | None, Query(alias="type", max_length=1_000)]
Kinds = Annotated[list[Literal["node", "edge"]] | None, Query(alias="kind")]
Ops = Annotated[list[Literal["insert", "update", "delete"]] | None, Query(alias="op")]


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
