"""What a test holds of the counting proxy: starts the process, drives it, and reads what it saw."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.bench.keys import KeyClass

ROOT = Path(__file__).resolve().parents[2]
READS = ("GET", "HEAD", "LIST")

Verb = Literal["GET", "HEAD", "PUT", "POST", "DELETE", "LIST"]
Action = Literal["status", "drop_before", "drop_after", "hang_before", "hang_after", "land_late"]


@dataclass(frozen=True)
class Rule:
    """A fault for the nth request that matches (and the next ``times - 1``; None: all of them).

    ``status`` answers with a status and no effect. ``drop_*`` cuts the connection before or after
    the upstream has acted. ``hang_*`` does the same after ``seconds``, or when rules are cleared.
    ``land_late`` cuts the connection at once and lets the effect come ``seconds`` later.
    """

    action: Action
    verb: Verb | None = None
    key_class: KeyClass | None = None
    key_contains: str | None = None
    nth: int = 1
    times: int | None = 1
    status: int = 503
    seconds: float = 30.0


@dataclass(frozen=True)
class Request:
    """One request as the proxy saw it; times are seconds since the counting began."""

    verb: str
    key: str
    key_class: KeyClass
    status: int | None
    fault: str | None
    bytes_in: int
    bytes_out: int
    started: float
    ended: float | None

    def __str__(self) -> str:
        fault = f" [{self.fault}]" if self.fault else ""
        return f"{self.verb} {self.key_class} {self.key} -> {self.status}{fault}"


@dataclass
class Seen:
    """The requests of one ``counting`` block, in the order in which they arrived."""

    log: list[Request] = field(default_factory=list)
    max_in_flight: int = 0

    @property
    def reads(self) -> int:
        return sum(request.verb in READS for request in self.log)

    @property
    def writes(self) -> int:
        return len(self.log) - self.reads

    @property
    def by_verb(self) -> Counter[str]:
        return Counter(request.verb for request in self.log)

    @property
    def by_class(self) -> Counter[str]:
        return Counter(request.key_class for request in self.log)

    @property
    def by_verb_and_class(self) -> Counter[tuple[str, str]]:
        return Counter((request.verb, request.key_class) for request in self.log)

    def __str__(self) -> str:
        lines = [f"{self.reads} reads, {self.writes} writes"]
        return "\n  ".join([*lines, *map(str, self.log)])


class ProxyGone(RuntimeError):
    """The proxy process ended or stopped answering."""


class Proxy:
    """A running proxy in front of one upstream; one per test process, reset between tests."""

    def __init__(self, upstream: str, *, answer_within: float = 20.0) -> None:
        self._answer_within = answer_within
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.proxy_server", upstream],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.port: int = self._read()["port"]
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        """As new: nothing seen, no rules, no latency, no cap."""
        self.clear()
        self.shape()
        self._ask({"do": "reset"})

    def shape(
        self, *, latency: float = 0.0, jitter: float = 0.0, concurrency: int = 0, seed: int = 0
    ) -> None:
        """Delay every request by ``latency`` to ``latency + jitter`` seconds; 0 means no cap."""
        shape = {"latency": latency, "jitter": jitter, "concurrency": concurrency, "seed": seed}
        self._ask({"do": "shape", **shape})

    def add(self, rule: Rule) -> None:
        self._ask({"do": "rule", "rule": asdict(rule)})

    def clear(self) -> None:
        """Forget all rules; what hangs now is cut."""
        self._ask({"do": "clear"})

    @contextmanager
    def rules(self, *rules: Rule) -> Iterator[None]:
        for rule in rules:
            self.add(rule)
        try:
            yield
        finally:
            self.clear()

    @contextmanager
    def counting(self) -> Iterator[Seen]:
        """What arrives inside the block; the value is complete when the block has ended."""
        self._ask({"do": "reset"})
        seen = Seen()
        try:
            yield seen
        finally:
            now = self.snapshot()
            seen.log, seen.max_in_flight = now.log, now.max_in_flight

    def snapshot(self) -> Seen:
        answer = self._ask({"do": "snapshot"})
        return Seen([Request(**entry) for entry in answer["log"]], answer["max_in_flight"])

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps(command).encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError as error:
                raise ProxyGone(f"the proxy ended with {self._process.poll()}") from error
            answer = self._read()
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], self._answer_within)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise ProxyGone(f"no answer from the proxy (exit code {self._process.poll()})")
        answer: dict[str, Any] = json.loads(line)
        return answer
