"""Owns the strictness of routes: a request with a parameter, a content type, a size or a depth that
a route does not have is refused before the route sees it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pydantic_core
from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from omnigraph.errors import InvalidArgument, OmnigraphError, TooLarge, UnsupportedMediaType
from omnigraph.lang.suggestions import near
from omnigraph.server.problems import known

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_REPEATABLE = frozenset({"type", "kind", "op"})


class JsonRequest(Request):
    """A request whose body is read within bounds, once."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            limits = self.scope["service"].limits
            self._body = await read_bounded(self, limits.json_bytes, "json_bytes")
        return self._body

    async def parse(self) -> None:
        limits = self.scope["service"].limits
        self._parsed = read_json(await self.body(), limits.json_depth)

    async def json(self) -> Any:
        return self._parsed


class StrictRoute(APIRoute):
    """A route that knows all of its parameters."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        named = frozenset(_query_names(self))
        has_body = self.body_field is not None

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                refuse_unknown(request, named)
            if not has_body:
                return await handle(request)
            require_json(request)
            read = JsonRequest(request.scope, request.receive)
            await read.parse()  # what is wrong with it is told in our words, not in FastAPI's
            return await handle(read)

        async def told(request: Request) -> Response:
            try:
                return await strict(request)
            except (OmnigraphError, HTTPException, RequestValidationError):
                raise
            except Exception as error:
                raise known(error) from error

        return told


def _all_queries(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.query_params
    for inner in dependant.dependencies:
        yield from _all_queries(inner)


def _query_names(route: APIRoute) -> list[str]:
    names = []
    for field in _all_queries(route.dependant):
        model = getattr(field.field_info, "annotation", None)
        inside = getattr(model, "model_fields", None)
        if inside is None:
            names.append(field.alias)
        else:
            names += [one.alias or name for name, one in inside.items()]
    return names


def refuse_unknown(request: Request, named: frozenset[str]) -> None:
    counted = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in counted.items():
        if name not in named:
            guess = near(name, sorted(named))
            known = f"There are {', '.join(sorted(named))}." if named else "There are none here."
            raise InvalidArgument(
                f"There is no parameter {name[:60]!r} here.",
                help=f"Did you mean {guess!r}?" if guess else known,
            )
        if count > 1 and name not in _REPEATABLE:
            raise InvalidArgument(f"The parameter {name!r} is given {count} times.")


def require_json(request: Request) -> None:
    given = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if given != "application/json":
        raise UnsupportedMediaType(
            f"The body is application/json here, not {given[:60]!r}.",
            help="Send it with Content-Type: application/json.",
        )


async def read_bounded(request: Request, most: int, limit: str) -> bytes:
    """The body, if it is no larger than that. What is larger is not read."""
    told = request.headers.get("content-length")
    if told is not None and int(told) > most:
        raise too_large(limit, most, int(told))
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise too_large(limit, most, size)
        parts.append(part)
    return b"".join(parts)


def too_large(limit: str, allowed: int, actual: int) -> TooLarge:
    return TooLarge(
        f"The body of this request may have {allowed:,} bytes.",
        limit=limit,
        allowed=allowed,
        actual=actual,
    )


def read_json(data: bytes, depth: int) -> Any:
    """JSON that is not nested deeper than that. Half a surrogate pair is refused, too."""
    if data.count(b"[") + data.count(b"{") > depth:
        _refuse_deep(data, depth)
    try:
        return pydantic_core.from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidArgument(f"The body is not JSON: {str(error)[:200]}.") from None


def _refuse_deep(data: bytes, most: int) -> None:
    depth = 0
    for match in _BRACKETS.finditer(data):
        first = match[0][:1]
        if first in b"[{":
            depth += 1
            if depth > most:
                raise TooLarge(
                    f"The body is nested deeper than {most} levels.",
                    limit="json_depth",
                    allowed=most,
                )
        elif first in b"]}":
            depth -= 1
