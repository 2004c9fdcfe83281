"""Owns the short way of the requests that come most often: a POST of JSON to one graph reaches its
route without the layers of the framework, which would cost more than the query. What is refused,
and in which words, is the same."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from omnigraph.errors import OmnigraphError
from omnigraph.server.call import NAME_PATTERN, GraphCall
from omnigraph.server.problems import known, problem_response, wrong_values
from omnigraph.server.routing import (
    JsonRequest,
    StrictRoute,
    read_json,
    refuse_unknown,
    require_json,
)
from omnigraph.wire.media import wants_typed

Endpoint = Callable[[GraphCall, Any], Awaitable[Response]]
_NAME = re.compile(NAME_PATTERN)
_BEFORE = "/graphs/"
_NO_PARAMETERS: frozenset[str] = frozenset()


class DirectRoutes:
    """Routes of the form `/graphs/{graph}/word` whose endpoint takes a call and a body."""

    def __init__(self, routes: Iterable[StrictRoute]) -> None:
        self._routes: dict[str, tuple[StrictRoute, type[BaseModel]]] = {}
        for route in routes:
            assert route.body_field is not None
            model = route.body_field.field_info.annotation
            assert isinstance(model, type)
            assert issubclass(model, BaseModel)
            self._routes[route.path.rpartition("/")[2]] = (route, model)

    def answer_to(self, scope: Scope) -> _ShortWay | None:
        """None if the request has to go the long way."""
        path: str = scope["path"]
        if scope["method"] != "POST" or not path.startswith(_BEFORE):
            return None
        name, slash, word = path[len(_BEFORE) :].partition("/")
        found = self._routes.get(word) if slash else None
        if found is None or _NAME.fullmatch(name) is None:
            return None
        scope["route"], scope["path_params"] = found[0], {"graph": name}
        return _ShortWay(name, found[0].endpoint, found[1])


class _ShortWay:
    def __init__(self, name: str, endpoint: Endpoint, model: type[BaseModel]) -> None:
        self._name = name
        self._endpoint = endpoint
        self._model = model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = JsonRequest(scope, receive)
        try:
            response = await self._made(request)
        except Exception as error:  # noqa: BLE001  every one becomes an answer
            told: OmnigraphError = known(error)
            kinds = wants_typed(request.headers.get("accept"))
            response = problem_response(told, scope.get("request_id"), with_kinds=kinds)
        await response(scope, receive, send)

    async def _made(self, request: JsonRequest) -> Response:
        if request.scope["query_string"]:
            refuse_unknown(request, _NO_PARAMETERS)
        require_json(request)
        given = read_json(await request.body(), request.scope["service"].limits.json_depth)
        return await self._endpoint(GraphCall(request, self._name), self._read(given))

    def _read(self, given: Any) -> BaseModel:
        try:
            return self._model.model_validate(given)
        except ValidationError as error:
            told = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
            raise wrong_values(told) from None


def direct_routes(*routers: Any) -> DirectRoutes:
    """Of routers with one route each."""
    return DirectRoutes(
        route for router in routers for route in router.routes if isinstance(route, StrictRoute)
    )
