"""Owns the answers that are errors: every one is a problem with a code, and none tells more."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from omnigraph.errors import (
    InvalidArgument,
    MethodNotAllowed,
    NotFound,
    OmnigraphError,
    Unauthenticated,
)
from omnigraph.wire.media import wants_typed
from omnigraph.wire.problems import MEDIA_TYPE, problem_of, retry_after

_LOG = logging.getLogger("omnigraph.server")
_MOST = 20


def problem_response(
    error: OmnigraphError, request_id: str | None, *, with_kinds: bool = False
) -> Response:
    headers = {"Cache-Control": "no-store", "Omnigraph-Code": error.code}
    wait = retry_after(error)
    if wait is not None:
        headers["Retry-After"] = str(wait)
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = str(error.details.pop("challenge", "Bearer"))
    if isinstance(error, MethodNotAllowed) and "allow" in error.details:
        headers["Allow"] = str(error.details["allow"])
    if error.http_status == 413:
        headers["Connection"] = "close"
    return Response(
        msgspec.json.encode(problem_of(error, request_id, with_kinds=with_kinds)),
        status_code=error.http_status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def known(error: BaseException) -> OmnigraphError:
    """The error as an answer has it. What nobody foresaw is told in the log alone."""
    if isinstance(error, OmnigraphError):
        return error
    from omnigraph.store.resource_errors import find_scarcity

    if (scarce := find_scarcity(error)) is not None:
        return scarce
    _LOG.error("a request failed by a mistake of the program", exc_info=error)
    return OmnigraphError(
        "Something went wrong that should not.",
        help="This is a bug; the log of the server has it under the request_id.",
    )


def wrong_request(error: RequestValidationError) -> InvalidArgument:
    """What does not fit in a path, a query or a body, part by part."""
    return wrong_values(error.errors())


def wrong_values(errors: Sequence[Any]) -> InvalidArgument:
    """The same of a body that was read by itself; its places begin with its names."""
    found = [{"parameter": _place(one["loc"]), "problem": _words(one)} for one in errors[:_MOST]]
    told = "; ".join(f"{one['parameter']}: {one['problem']}" for one in found[:3])
    return InvalidArgument(f"The request does not fit: {told}.", problems=found)


def _place(parts: Iterable[Any]) -> str:
    named = [str(part) for part in parts]
    return ".".join(named[1:] if len(named) > 1 else named)


def _words(one: dict[str, Any]) -> str:
    if one["type"] == "extra_forbidden":
        return "there is no such name here"
    if one["type"] == "missing":
        return "it is missing"
    text = str(one["msg"])
    return text[:1].lower() + text[1:]


def answer_problems(app: FastAPI) -> None:
    """Whatever a route raises becomes a problem."""

    async def told(request: Request, error: Exception) -> Response:
        kinds = wants_typed(request.headers.get("accept"))
        return problem_response(known(error), request.scope.get("request_id"), with_kinds=kinds)

    async def wrong(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem_response(wrong_request(error), request.scope.get("request_id"))

    async def routing(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:
            allowed = (error.headers or {}).get("Allow", "")
            found: OmnigraphError = MethodNotAllowed(
                f"{request.method} is not possible here.", allow=allowed
            )
        elif error.status_code == 404:
            found = NotFound("There is nothing at this address.", help="See /openapi.json.")
        else:
            found = InvalidArgument("The request cannot be read.")
        return problem_response(found, request.scope.get("request_id"))

    app.add_exception_handler(OmnigraphError, told)
    app.add_exception_handler(RequestValidationError, wrong)
    app.add_exception_handler(HTTPException, routing)
