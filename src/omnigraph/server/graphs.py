"""Owns the graphs of one server process: their names, and one open handle on each."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init as init_graph
from omnigraph.engine.opening import open as open_graph
from omnigraph.engine.upkeep.graph_deletion import delete as delete_root
from omnigraph.errors import Denied, GraphNotFound, GraphUnavailable, OmnigraphError
from omnigraph.settings import Settings
from omnigraph.store.roots import parse_root
from omnigraph.store.versions import STAMP_KEY

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_AGAIN = 5.0
"""Seconds after which a graph that did not open is tried again."""
_LOG = logging.getLogger("omnigraph.server")


@dataclass
class _Place:
    root: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    graph: Graph | None = None
    failed: float | None = None


class Graphs:
    """`prefix` is a root below which every graph is served by its last name; with `create` callers
    may make and delete graphs there."""

    def __init__(
        self,
        roots: Mapping[str, str],
        *,
        prefix: str | None = None,
        create: bool = True,
        settings: Settings | None = None,
    ) -> None:
        self.prefix = prefix
        self._create = create
        self._settings = settings
        self._lock = threading.Lock()
        self._places = {name: _Place(root) for name, root in roots.items()}

    def names(self) -> list[str]:
        """Those that have a name in the configuration, and those below the prefix that were asked
        for."""
        with self._lock:
            return sorted(self._places)

    def listed(self) -> list[str]:
        """All names: those of the configuration, and of every graph below the prefix."""
        prefix = self.prefix
        if prefix is None:
            return self.names()
        root = parse_root(prefix)
        objects = root.objects(self._settings or Settings.from_environment())
        found = {name for name in objects.groups("") if NAME.fullmatch(name)}
        if root.directory is not None:  # asking a bucket for each would take too long
            found = {name for name in found if objects.exists(f"{name}/{STAMP_KEY}")}
        return sorted({*self.names(), *found})

    def roots(self) -> dict[str, str]:
        with self._lock:
            return {name: place.root for name, place in self._places.items()}

    def open(self, name: str) -> Graph:
        """The handle of this process on a graph. One that does not open is unavailable, and the
        log says why: the answer must not tell where it is."""
        place = self._place(name)
        graph = place.graph
        if graph is not None:
            return graph
        with place.lock:
            if place.graph is None:
                place.graph = self._try(name, place)
            return place.graph

    def is_open(self, name: str) -> bool:
        with self._lock:
            place = self._places.get(name)
        return place is not None and place.graph is not None

    def _place(self, name: str) -> _Place:
        with self._lock:
            place = self._places.get(name)
            if place is not None:
                return place
        if self.prefix is None or NAME.fullmatch(name) is None:
            raise no_graph(name)
        place = _Place(f"{self.prefix.rstrip('/')}/{name}")
        try:
            place.graph = open_graph(place.root, settings=self._settings)
        except GraphNotFound:
            raise no_graph(name) from None
        except OmnigraphError as error:
            raise self._unavailable(name, place, error) from error
        with self._lock:
            return self._places.setdefault(name, place)

    def _try(self, name: str, place: _Place) -> Graph:
        if place.failed is not None and time.monotonic() - place.failed < _AGAIN:
            raise GraphUnavailable(f"The graph {name} cannot be opened.")
        try:
            return open_graph(place.root, settings=self._settings)
        except OmnigraphError as error:
            raise self._unavailable(name, place, error) from error

    def _unavailable(self, name: str, place: _Place, error: OmnigraphError) -> GraphUnavailable:
        place.failed = time.monotonic()
        _LOG.error("graph %s at %s does not open: %s", name, place.root, error)
        return GraphUnavailable(f"The graph {name} cannot be opened.")

    def create(self, name: str, schema: str) -> str:
        """Makes a graph below the prefix, and tells its first commit."""
        root = self._below(name)
        graph = init_graph(root, schema=schema, settings=self._settings)
        with self._lock:
            self._places[name] = _Place(root, graph=graph)
        return graph.commit.id

    def delete(self, name: str) -> None:
        """Deletes a graph below the prefix for good."""
        root = self._below(name)
        self.open(name)  # one that is not there is told as such
        with self._lock:
            place = self._places.pop(name)
        if place.graph is not None:
            place.graph.close()
        delete_root(root)

    def _below(self, name: str) -> str:
        if self.prefix is None or not self._create:
            raise Denied(
                "This server neither makes nor deletes graphs.",
                help="That takes a prefix, and create = true: [server.prefix].",
            )
        with self._lock:
            place = self._places.get(name)
        root = f"{self.prefix.rstrip('/')}/{name}"
        if place is not None and place.root != root:
            raise Denied(f"The graph {name} is not below the prefix of this server.")
        return root

    def replace(self, roots: Mapping[str, str], prefix: str | None, *, create: bool = True) -> None:
        """Other graphs from now on. Handles on those that stay are kept."""
        with self._lock:
            kept = {n: p for n, p in self._places.items() if roots.get(n) == p.root}
            gone = [p for n, p in self._places.items() if n not in kept]
            self._places = {name: kept.get(name) or _Place(root) for name, root in roots.items()}
            self.prefix, self._create = prefix, create
        for place in gone:
            if place.graph is not None:
                place.graph.close()

    def close(self) -> None:
        with self._lock:
            places, self._places = list(self._places.values()), {}
        for place in places:
            if place.graph is not None:
                place.graph.close()


def no_graph(name: str) -> GraphNotFound:
    return GraphNotFound(
        f"There is no graph {name!r} here.", help="GET /graphs lists what there is."
    )
