"""Owns the requests to one graph on a server: reads that are repeated until they are answered,
lists page by page, lines as they come, and the schema at a ref."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import urllib3
from urllib3.exceptions import HTTPError

from omnigraph.client.connection import SILENCE, Answered, Connection, Query
from omnigraph.client.told import commit_of
from omnigraph.client.understanding import understanding
from omnigraph.errors import Corrupt, InvalidArgument, ReadOnly, Unavailable
from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import Catalog
from omnigraph.model.version import Commit
from omnigraph.plan.migrate import apply_steps, plan_migration
from omnigraph.runtime import Runtime
from omnigraph.tracing import add_context
from omnigraph.wire.conditions import HOLDING, holding
from omnigraph.wire.media import LINES
from omnigraph.wire.streams import read_line
from omnigraph.wire.values import plain

TYPED = "application/json;values=typed"
TYPED_LINES = f"{LINES};values=typed"
JSON_BODY = {"Content-Type": "application/json"}


def json_body(value: Mapping[str, Any]) -> bytes:
    """What is not given is left out."""
    given = {name: held for name, held in value.items() if held is not None}
    try:
        return msgspec.json.encode(plain(given))
    except UnicodeEncodeError:
        raise InvalidArgument(
            "A text holds half a character (a lone surrogate), which cannot be stored."
        ) from None


@dataclass(frozen=True)
class SchemaAt:
    """The schema of a version. `pin` is the ref that will always name it."""

    pin: str
    commit: Commit
    text: str
    types: tuple[str, ...]
    digest: str

    @property
    def catalog(self) -> Catalog:
        """The types as this process understands the text. Only their names and rules count here:
        the server has the columns and the ids."""
        return _catalog_of(self.text)


@lru_cache(maxsize=64)
def _catalog_of(text: str) -> Catalog:
    with understanding():
        checked = compile_schema(text)
    if checked.schema is None:
        raise Corrupt("The schema of the server cannot be read here; is this client too old?")
    return apply_steps(None, plan_migration(None, checked.schema).steps)


class ServedGraph:
    """One graph of one server, for all handles on it."""

    def __init__(self, connection: Connection, *, writable: bool = True) -> None:
        self.connection = connection
        self.closed = False
        self._writable = writable
        self._beside: ServedGraph | None = None
        self.holding: dict[str, str] = {}
        self._actor: str | None = None
        self._asked_actor = False

    @property
    def runtime(self) -> Runtime:
        return self.connection.runtime

    def of_branch(self, name: str, incarnation: int) -> ServedGraph:
        """The same graph for a handle on a branch, which is never another one of its name."""
        beside = ServedGraph(self.connection, writable=self._writable)
        beside._beside = self
        beside.holding = {HOLDING: holding(name, incarnation)}
        return beside

    @property
    def is_closed(self) -> bool:
        return self.closed or (self._beside is not None and self._beside.is_closed)

    def require_open(self, *, writing: bool = False) -> None:
        if self.is_closed:
            raise InvalidArgument(
                f"The graph {self.connection.address.uri} was closed.", help="Open it again."
            )
        if writing and not self._writable:
            raise ReadOnly(f"The graph {self.connection.address.uri} is open for reading only.")

    def close(self) -> None:
        self.closed = True
        self.connection.close()

    def path(self, path: str) -> str:
        return self.connection.address.path + path

    # Reads

    def get(self, path: str, query: Query | None = None, *, accept: str = TYPED) -> Any:
        """One JSON object."""
        return self.answer("GET", path, query=query, accept=accept).json

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """One JSON object, of a question that has a body."""
        return self.answer("POST", path, body=body).json

    def answer(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        accept: str = TYPED,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        sent = self._headers(accept, body, headers)
        data = None if body is None else json_body(body)
        return self.connection.repeat(
            lambda: self.connection.once(
                method, self.path(path), query=query, body=data, headers=sent
            )
        )

    def begin(
        self,
        method: str,
        path: str,
        *,
        accept: str,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        silence: float = SILENCE,
        headers: Mapping[str, str] | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """An answer that is read as it comes, by who closes it."""
        return self.connection.repeat(
            lambda: self.begin_once(
                method,
                path,
                accept=accept,
                query=query,
                body=body,
                silence=silence,
                headers=headers,
            )
        )

    def begin_once(
        self,
        method: str,
        path: str,
        *,
        accept: str,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        silence: float = SILENCE,
        headers: Mapping[str, str] | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """The same by one attempt."""
        return self.connection.begin(
            method,
            self.path(path),
            query=query,
            body=None if body is None else json_body(body),
            headers=self._headers(accept, body, headers),
            silence=silence,
        )

    def _headers(
        self, accept: str, body: Mapping[str, Any] | None, more: Mapping[str, str] | None
    ) -> dict[str, str]:
        kind = {} if body is None else JSON_BODY
        headers = {"Accept": accept, **self.holding, **(more or {}), **kind}
        add_context(headers)
        return headers

    def items(self, path: str, query: Query | None = None, *, page: int = 100) -> Iterator[Any]:
        """A list, page by page as it is read."""
        cursor: str | None = None
        while True:
            asked = dict(query or {}) | {"limit": page, "cursor": cursor}
            with understanding():
                told = self.get(path, asked)
                items, before = [*told["items"]], cursor
                cursor = told["cursor"]
                if cursor is not None and cursor == before:
                    raise ValueError("a list goes on where it was")
            yield from items
            if cursor is None:
                return
            page = min(1000, 2 * page)

    def lines(self, path: str, query: Query | None = None) -> Iterator[dict[str, Any]]:
        """Rows as lines. One that breaks off is an error, and never a short list."""
        response = self.begin("GET", path, accept=TYPED_LINES, query=query)
        try:
            rest = b""
            for piece in pieces_of(response):
                *whole, rest = (rest + piece).split(b"\n")
                yield from (_row_of(line) for line in whole if line)
            if rest:
                raise broken("in the middle of a line")
        finally:
            response.close()

    # The schema, and who asks

    @understanding()
    def schema_at(self, ref: str) -> SchemaAt:
        """The schema at a ref, and the commit that the ref names now."""
        told = self.get("/schema", {"ref": ref})
        names = [one["name"] for one in told["types"]]
        return SchemaAt(
            msgspec.convert(told["pin"], str),
            commit_of(told["lineage"]),
            msgspec.convert(told["schema"], str),
            msgspec.convert(names, tuple[str, ...]),
            msgspec.convert(told["digest"], str),
        )

    @understanding()
    def actor(self) -> str | None:
        """Who the server takes this client for."""
        if not self._asked_actor:
            connection = self.connection
            told = connection.repeat(lambda: connection.once("GET", self.server_path("/whoami")))
            self._actor = msgspec.convert(told.json["actor"], str | None)
            self._asked_actor = True
        return self._actor

    def server_path(self, path: str) -> str:
        """A path of the server itself, which may lie below a prefix."""
        return self.connection.address.path.rpartition("/graphs/")[0] + path


@understanding()
def _row_of(line: bytes) -> dict[str, Any]:
    return msgspec.convert(read_line(line), dict[str, Any])


def pieces_of(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The bytes of an answer as they come."""
    try:
        yield from response.stream(1 << 16)
    except (HTTPError, OSError) as error:
        raise broken(str(error)[:100]) from error


def broken(where: str) -> Unavailable:
    return Unavailable(
        f"The answer of the server broke off: {where}.",
        help="What came before is only a part of it; ask again.",
    )
