"""Owns one run of the program: its options, its streams, its clock and the graph that it opens."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli.config import Config, is_served, read_config, require_root
from omnigraph.cli.options import Options
from omnigraph.cli.output import Output
from omnigraph.cli.paths import STDIN, unreadable
from omnigraph.errors import InvalidArgument, NotRemote, OmnigraphError

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from omnigraph.runtime import Runtime

_LOOKED_AT = 8
_REMEMBERED = 4096


@dataclass
class Invocation:
    """`runtime` is None for the machine's own clock. `half_done` is the message for a user who
    interrupts a command that works in steps. `done` says what was done, for a user whose output was
    lost. A write that makes a commit needs neither, because its commit can be found."""

    options: Options
    out: Output
    environment: Mapping[str, str]
    runtime: Runtime | None = None
    half_done: str | None = field(default=None, init=False)
    done: str | None = field(default=None, init=False)
    _written: str | None = field(default=None, init=False)
    _tokens: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED), init=False)

    @cached_property
    def config(self) -> Config:
        try:
            directory = Path.cwd()
        except FileNotFoundError:  # the directory is gone, and its omnigraph.toml with it
            directory = Path("/")
        return read_config(directory, self.environment)

    @property
    def root(self) -> str:
        return require_root(self.options.root, self.config)

    def actor(self, given: str | None, root: str | None = None) -> str | None:
        """Who writes: the option, then OMNIGRAPH_ACTOR, then omnigraph.toml. On a server it is who
        the token is for."""
        if not is_served(self.root if root is None else root):
            return given or self.config.actor
        if given is not None:
            raise NotRemote(
                f"A write on a server cannot be signed by {given!r}: the token says who writes.",
                help="Leave --as out; 'omnigraph whoami' tells who you are there.",
            )
        return None

    @property
    def may_still_be_done(self) -> bool:
        """A write that was sent is done by the server, whoever waits for it."""
        return self._written is not None and bool(self._tokens) and is_served(self.root)

    def require_stored(self, what: str) -> str:
        """The root, for a command that needs the files of the graph."""
        if is_served(self.root):
            raise NotRemote(
                f"A graph on a server cannot be {what}: it gives no files.",
                help="Give the storage behind the server: a path or s3://bucket/prefix.",
            )
        return self.root

    @contextlib.contextmanager
    def reading(self) -> Iterator[Graph]:
        """The graph, opened for reading only."""
        with self._opening()(self.root, mode="r", runtime=self.watched_runtime()) as graph:
            yield graph

    @contextlib.contextmanager
    def writing(self, branch: str = "main") -> Iterator[Graph]:
        """The graph, opened for writing. After an interrupt, the write is looked for on
        `branch`."""
        root = self.root
        self._written = branch
        with self._opening()(root, runtime=self.watched_runtime()) as graph:
            yield graph

    def _opening(self) -> Callable[..., Any]:
        home = "omnigraph.client.opening" if is_served(self.root) else "omnigraph.engine.opening"
        found: Callable[..., Any] = import_module(home).open
        return found

    def watched_runtime(self) -> Runtime:
        """The runtime, wrapped so that it remembers the ids it gave out last."""
        from omnigraph.runtime import SYSTEM

        return RecordingRuntime(self.runtime or SYSTEM, self._tokens)

    def find_interrupted(self) -> str | None:
        """The commit that landed although its writer was interrupted, if there is one. A graph
        version carries a token that only its writer can have made."""
        if self._written is None or not self._tokens:
            return None
        if is_served(self.root):
            from omnigraph.client.opening import find_keyed

            return find_keyed(self.root, self._written, tuple(self._tokens))
        from omnigraph.engine.opening import open

        mine = set(self._tokens)
        with open(self.root, mode="r") as graph, contextlib.suppress(OmnigraphError):
            for back in range(_LOOKED_AT):
                version = graph.at(f"{self._written}~{back}").graph_version
                if version.token in mine:
                    return version.commit.id
        return None

    def read_text(self, path: str) -> str:
        """A text file, or stdin for `-`. A failure is an error message, never a stack trace."""
        if path == STDIN:
            return self.out.streams.stdin.read()
        place = Path(path)
        try:
            if place.is_dir():
                raise InvalidArgument(f"{path} is a directory, not a file.")
            return place.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InvalidArgument(f"{path} is not a text in UTF-8.") from None
        except OSError as error:
            raise unreadable(path, error) from None


class RecordingRuntime:
    """Wraps another runtime and keeps its newest ids."""

    def __init__(self, inner: Runtime, ids: deque[str]) -> None:
        self._inner = inner
        self._ids = ids

    def now(self) -> int:
        return self._inner.now()

    def monotonic(self) -> float:
        return self._inner.monotonic()

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)

    def random(self) -> float:
        return self._inner.random()

    def ulid(self) -> str:
        made = self._inner.ulid()
        self._ids.append(made)
        return made
