"""Runs functions of a test in real processes: started together, killed at will, never left hanging.

Processes are fresh interpreters, never forks: obstore does not survive a fork.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
START_WITHIN = 60.0


class Hung(AssertionError):
    """A process did not do in time what it should; the message has the stacks of its threads."""


class Failed(AssertionError):
    """A process raised, or ended without an answer; the message has its traceback."""


@dataclass(frozen=True)
class Outcome:
    """What became of one process: a result, an error, or neither when it was killed."""

    result: Any = None
    error: str | None = None
    message: str = ""
    traceback: str = ""
    seconds: float = 0.0
    exit_code: int | None = None
    stderr: str = ""
    answered: bool = False

    @property
    def killed(self) -> bool:
        return not self.answered and self.exit_code == -signal.SIGKILL


@dataclass
class _Heard:
    """What a child has said so far."""

    points: queue.Queue[str | None] = field(default_factory=queue.Queue)
    ready: threading.Event = field(default_factory=threading.Event)
    last: dict[str, Any] | None = None


class Worker:
    """One child process that runs ``module:function`` with JSON arguments when told to go."""

    def __init__(
        self, target: str, arguments: Mapping[str, Any], *, env: Mapping[str, str] | None = None
    ) -> None:
        self._target = target
        self._heard = _Heard()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=ROOT,
            env={**os.environ, **(env or {}), "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self._say(json.dumps({"target": target, "arguments": dict(arguments)}))

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, within: float = START_WITHIN) -> None:
        """Until the function is imported and the process waits at the barrier."""
        if not self._heard.ready.wait(within):
            raise Hung(self._describe("did not start", within))

    def go(self) -> None:
        self._say("go")

    def wait_for(self, point: str, within: float = START_WITHIN) -> None:
        """Until the function has reported (or pauses at) this point."""
        deadline = time.monotonic() + within
        while True:
            try:
                reached = self._heard.points.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Hung(self._describe(f"did not reach {point!r}", within)) from None
            if reached == point:
                return
            if reached is None:
                raise Failed(f"{self._target} ended before {point!r}\n{self._said()}")

    def resume(self) -> None:
        """Let a function that pauses go on."""
        self._say("resume")

    def kill(self) -> None:
        """kill -9: no handler, no flush, no goodbye."""
        self._process.kill()
        self._process.wait()

    def outcome(self, within: float = START_WITHIN) -> Outcome:
        """How it ended; a process that does not end in time is killed and raises `Hung`."""
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise Hung(self._describe("did not end", within)) from None
        self._reader.join(5)
        said = self._heard.last or {}
        code, stderr = self._process.returncode, self._said()
        return Outcome(**said, exit_code=code, stderr=stderr, answered=self._heard.last is not None)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        self._reader.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue
        self._stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # it has ended; its outcome says why

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "point" in message:
                self._heard.points.put(message["point"])
            elif "ready" in message:
                self._heard.ready.set()
            else:
                self._heard.last = message
        self._heard.ready.set()
        self._heard.points.put(None)

    def _describe(self, problem: str, within: float) -> str:
        """Say what hung, with the stacks of all its threads, and end it."""
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        self.kill()
        return f"{self._target} {problem} within {within:g} s\n{self._said()}"

    def _said(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")[-20_000:]


def run_together(
    target: str,
    arguments: Sequence[Mapping[str, Any]],
    *,
    env: Mapping[str, str] | None = None,
    within: float = 120.0,
) -> list[Outcome]:
    """Run one process per arguments, all released at one moment; their outcomes in order."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(target, each, env=env)) for each in arguments]
        for worker in workers:
            worker.wait_ready()
        for worker in workers:
            worker.go()
        deadline = time.monotonic() + within
        return [worker.outcome(max(0.1, deadline - time.monotonic())) for worker in workers]


def results_of(outcomes: Sequence[Outcome]) -> list[Any]:
    """The results, if every process had one; else `Failed` with the first traceback."""
    for index, outcome in enumerate(outcomes):
        if not outcome.answered or outcome.error is not None:
            told = outcome.traceback or f"no answer, exit code {outcome.exit_code}"
            raise Failed(f"process {index}: {told}\n{outcome.stderr}")
    return [outcome.result for outcome in outcomes]
