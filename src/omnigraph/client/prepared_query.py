"""Owns a query that was checked once and is asked of a server many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.arguments import checked
from omnigraph.engine.query.expand import Kernel
from omnigraph.engine.query.prepare import Preparations
from omnigraph.engine.query.result import Result
from omnigraph.model.catalog import Catalog


class RemotePreparedQuery:
    """A query whose text has been read and checked here, against the schema of the server. Calling
    it asks the query, of the handle that made it. The server keeps checked texts by itself."""

    def __init__(
        self, ask: Callable[..., Result], text: str, name: str | None, catalog: Catalog
    ) -> None:
        Preparations().read(text, name, catalog)
        self._ask = ask
        self._text = text
        self._name = name

    @checked
    def __call__(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
    ) -> Result:
        return self._ask(
            self._text,
            self._name,
            params,
            timeout=timeout,
            memory_limit=memory_limit,
            kernel=kernel,
        )

    def __repr__(self) -> str:
        return f"PreparedQuery({self._name or self._text!r})"
