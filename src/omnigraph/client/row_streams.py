"""Owns rows that come from a server as Arrow: whole, or an error, and never silently fewer."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, cast

import pyarrow as pa
import urllib3
from urllib3.exceptions import HTTPError

from omnigraph.client.connection import SILENCE, Connection, Lost, shut
from omnigraph.client.served_graph import ServedGraph, broken
from omnigraph.client.understanding import understanding
from omnigraph.errors import Cancelled, InvalidArgument
from omnigraph.wire.media import ARROW
from omnigraph.wire.streams import Interrupted, WholeArrow


class RowStream:
    """The answer to one question. The schema is here at once, and with it the first rows: a small
    answer is then complete, and holds no connection. One that broke off before a row of it was
    given away is asked again, of the same commit."""

    def __init__(
        self, connection: Connection, ask: Callable[[str | None], urllib3.BaseHTTPResponse]
    ) -> None:
        self._connection = connection
        self._ask = ask
        self._lock = threading.Lock()
        self._cancelled = False
        self._connection.repeat(lambda: self._begin(None))

    def _begin(self, commit: str | None) -> None:
        """One that breaks off before its first rows are here has told nothing yet."""
        self._response = self._ask(commit)
        try:
            self._rows = WholeArrow(cast(IO[bytes], _AnswerBody(self._response)))
            self.schema = self._rows.schema
            self._batches = iter(self._rows)
            self._first = self._next()
            self._second = None if self._first is None else self._next_if_small(self._first)
        except Interrupted as error:
            self._response.close()
            self._refuse_cancelled(error)
            raise Lost(f"The answer broke off: {error}", sent=True) from error
        except BaseException:
            self._response.close()
            raise

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    @understanding()
    def commit(self) -> str:
        return str(self.headers["omnigraph-commit"])

    def batches(self) -> Iterator[pa.RecordBatch]:
        given = False
        try:
            while (batch := self._take()) is not None:
                given = True
                yield batch
        except Interrupted as error:
            self._refuse_cancelled(error)
            if given:
                raise broken(str(error)) from error
            self._response.close()
            commit = self.commit
            self._connection.repeat(lambda: self._begin(commit))
            yield from self._rest()
        finally:
            self._response.close()

    def _rest(self) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := self._take()) is not None:
                yield batch
        except Interrupted as error:
            self._refuse_cancelled(error)
            raise broken(str(error)) from error

    def cancel(self) -> None:
        """From another thread, too: whoever waits for rows is told."""
        with self._lock:
            self._cancelled = True
        shut(self._response)

    def _refuse_cancelled(self, error: BaseException | None = None) -> None:
        if self._cancelled:
            raise Cancelled("The query was cancelled.", limit="cancelled") from error

    def _take(self) -> pa.RecordBatch | None:
        self._refuse_cancelled()
        if self._first is not None:
            batch, self._first, self._second = self._first, self._second, None
            return batch
        return self._next()

    def _next(self) -> pa.RecordBatch | None:
        """The next batch that has rows; at the end the connection is free."""
        for batch in self._batches:
            if batch.num_rows:
                return batch
        _drain(self._response)
        return None

    def _next_if_small(self, first: pa.RecordBatch) -> pa.RecordBatch | None:
        """A first batch that is not full is mostly the only one: then the end is next to it."""
        return self._next() if first.num_rows < _FULL else None


_FULL = 1024


class _AnswerBody(io.RawIOBase):
    """The body of an answer; a connection that breaks is an interruption."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        try:
            return bytes(self._response.read(None if size < 0 else size))
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            raise Interrupted(str(error)[:200]) from error


def _drain(response: urllib3.BaseHTTPResponse) -> None:
    """Reads what follows the end mark, which is nothing, so that the connection can be used
    again."""
    try:
        response.read()
        response.release_conn()
    except (HTTPError, OSError):
        response.close()


def ask_rows(
    served: ServedGraph, path: str, body: Mapping[str, Any], *, silence: float = SILENCE
) -> RowStream:
    """Asks for rows. `ref` of the body is replaced by the commit if it has to be asked again."""
    near = served.connection.address.is_loopback
    accept = ARROW if near else f"{ARROW};compression=zstd"

    def ask(commit: str | None) -> urllib3.BaseHTTPResponse:
        pinned = body if commit is None else pinned_at(body, commit)
        return served.begin_once("POST", path, body=pinned, accept=accept, silence=silence)

    return RowStream(served.connection, ask)


def pinned_at(body: Mapping[str, Any], commit: str) -> dict[str, Any]:
    """The same question of one commit, reached by the same branch."""
    ref = str(body.get("ref") or "main")
    if "@" in ref or "~" in ref or "*" in ref:
        return dict(body)
    return dict(body) | {"ref": f"{ref}@{commit}"}


def require_here(engine: str) -> None:
    if engine == "spark":
        from omnigraph.errors import NotRemote

        raise NotRemote(
            "Spark reads the files of a graph, and a server gives none.",
            help="Leave the engine out, or open the storage behind the server.",
        )
    if engine not in ("auto", "local"):
        raise InvalidArgument(f"There is no engine {engine!r}; choose 'local'.")
