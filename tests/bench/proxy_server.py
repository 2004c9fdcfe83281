"""The counting, slowing and breaking reverse proxy: one process, driven by JSON lines on stdin.

It may not change a request that it lets through: Host, raw path, raw query and body reach the
upstream as they came, so that signatures stay valid. It ends when its stdin does, so it cannot
outlive the test run that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import random
import re
import sys
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

import aiohttp
from aiohttp import web
from yarl import URL

from tests.bench.keys import key_class

# Of one connection, not of the message: a proxy makes its own.
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade"}


ACTIONS = ("status", "drop_before", "drop_after", "hang_before", "hang_after", "land_late")


@dataclass
class ActiveRule:
    """A fault rule with how often it has matched so far."""

    action: str
    verb: str | None
    key_class: str | None
    key_contains: str | None
    nth: int
    times: int | None
    status: int
    seconds: float
    matched: int = 0

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"no such fault: {self.action}")

    def takes(self, verb: str, kind: str, key: str) -> bool:
        """Count a matching request, and say whether it is one of those to break."""
        if self.verb not in (None, verb) or self.key_class not in (None, kind):
            return False
        if self.key_contains is not None and self.key_contains not in key:
            return False
        self.matched += 1
        first = self.nth
        return self.matched >= first and (self.times is None or self.matched < first + self.times)


@dataclass
class State:
    """What the proxy is told to do and what it has seen."""

    upstream: str
    latency: float = 0.0
    jitter: float = 0.0
    random: random.Random = field(default_factory=lambda: random.Random(0))
    slots: asyncio.Semaphore | None = None
    rules: list[ActiveRule] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    log: list[dict[str, Any]] = field(default_factory=list)
    late: set[asyncio.Task[Any]] = field(default_factory=set)
    started: float = field(default_factory=time.perf_counter)
    in_flight: int = 0
    max_in_flight: int = 0


@dataclass(frozen=True)
class Answer:
    """An upstream's whole answer."""

    status: int
    reason: str | None
    headers: list[tuple[str, str]]
    body: bytes


def describe(method: str, raw_path: str, body: bytes) -> tuple[str, str]:
    """The verb that is counted and the object key (or listed prefix) of a path-style request.

    A bulk deletion is a POST to the bucket; it counts as a DELETE of its first key.
    """
    path, _, query = raw_path.partition("?")
    bucket_and_key = unquote(path).lstrip("/")
    key = bucket_and_key.partition("/")[2]
    options = parse_qs(query, keep_blank_values=True)
    if method == "GET" and not key and ("list-type" in options or "prefix" in options):
        return "LIST", options.get("prefix", [""])[0]
    if method == "POST" and not key and "delete" in options:
        first = re.search(rb"<Key>(.*?)</Key>", body)
        return "DELETE", html.unescape(first[1].decode()) if first else ""
    return method, key


class Proxy:
    """Forwards requests, with latency, the cap and the first rule that takes each applied."""

    def __init__(self, state: State, session: aiohttp.ClientSession) -> None:
        self._state = state
        self._session = session

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        state = self._state
        body = await request.content.read()
        verb, key = describe(request.method, request.raw_path, body)
        kind = key_class(key)
        entry = self._enter(verb, kind, key, len(body))
        try:
            rule = next((r for r in state.rules if r.takes(verb, kind, key)), None)
            async with state.slots or contextlib.nullcontext():
                await self._delay()
                answer = await self._answer(request, body, rule, entry)
            if answer is None:
                return self._drop(request)
            entry["status"], entry["bytes_out"] = answer.status, len(answer.body)
            return await self._reply(request, answer)
        finally:
            state.in_flight -= 1
            entry["ended"] = time.perf_counter() - state.started

    def _enter(self, verb: str, kind: str, key: str, size: int) -> dict[str, Any]:
        state = self._state
        state.in_flight += 1
        state.max_in_flight = max(state.max_in_flight, state.in_flight)
        entry: dict[str, Any] = {
            "verb": verb,
            "key": key,
            "key_class": kind,
            "status": None,
            "fault": None,
            "bytes_in": size,
            "bytes_out": 0,
            "started": time.perf_counter() - state.started,
            "ended": None,
        }
        state.log.append(entry)
        return entry

    async def _delay(self) -> None:
        state = self._state
        delay = state.latency + state.jitter * state.random.random()
        if delay > 0:
            await asyncio.sleep(delay)

    async def _answer(
        self, request: web.BaseRequest, body: bytes, rule: ActiveRule | None, entry: dict[str, Any]
    ) -> Answer | None:
        """The answer for the client; None means that the connection is cut instead."""
        if rule is None:
            return await self._forward(request, body)
        entry["fault"] = rule.action
        match rule.action:
            case "status":
                return Answer(rule.status, None, [], b"")
            case "drop_before":
                return None
            case "drop_after":
                await self._forward(request, body)
            case "hang_before":
                await self._hang(rule.seconds)
            case "hang_after":
                await self._forward(request, body)
                await self._hang(rule.seconds)
            case "land_late":
                task = asyncio.create_task(self._land_late(request, body, rule.seconds))
                self._state.late.add(task)
                task.add_done_callback(self._state.late.discard)
        return None

    async def _hang(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._state.released.wait(), seconds)

    async def _land_late(self, request: web.BaseRequest, body: bytes, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._forward(request, body)

    async def _forward(self, request: web.BaseRequest, body: bytes) -> Answer:
        headers = [(k, v) for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP]
        url = URL(self._state.upstream + request.raw_path, encoded=True)
        async with self._session.request(
            request.method, url, headers=headers, data=body, allow_redirects=False
        ) as response:
            kept = [(k, v) for k, v in response.headers.items() if k.lower() not in _HOP_BY_HOP]
            return Answer(response.status, response.reason, kept, await response.read())

    @staticmethod
    def _drop(request: web.BaseRequest) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)

    @staticmethod
    async def _reply(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        response.headers.extend(answer.headers)
        if "Content-Length" not in response.headers:
            response.content_length = len(answer.body)
        with contextlib.suppress(ConnectionError):  # the client may have given up while it waited
            await response.prepare(request)
            if answer.body:
                await response.write(answer.body)
            await response.write_eof()
        return response


def control(state: State, command: dict[str, Any]) -> dict[str, Any]:
    """Apply one command from the test to the state; the answer goes back as one JSON line."""
    match command["do"]:
        case "reset":
            state.log = []
            state.max_in_flight = state.in_flight
            state.started = time.perf_counter()
        case "snapshot":
            counted = {"in_flight": state.in_flight, "max_in_flight": state.max_in_flight}
            return {"log": state.log, "late": len(state.late), **counted}
        case "shape":
            state.latency, state.jitter = command["latency"], command["jitter"]
            state.random = random.Random(command["seed"])
            cap = command["concurrency"]
            state.slots = asyncio.Semaphore(cap) if cap else None
        case "rule":
            state.rules.append(ActiveRule(**command["rule"]))
        case "clear":
            state.rules = []
            state.released.set()  # what hangs now goes on
            state.released = asyncio.Event()
        case unknown:
            raise ValueError(f"no such command: {unknown}")
    return {}


async def obey(state: State) -> None:
    """Read commands until stdin ends."""
    reader = asyncio.StreamReader(limit=2**24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        try:
            answer = control(state, json.loads(line))
        except (KeyError, TypeError, ValueError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


async def serve(upstream: str) -> None:
    """Listen on a free loopback port, say which on stdout, and obey."""
    state = State(upstream=upstream)
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        skip_auto_headers=["User-Agent", "Content-Type", "Accept", "Accept-Encoding"],
    ) as session:
        server = web.Server(Proxy(state, session).handle, auto_decompress=False, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        sys.stdout.write(json.dumps({"port": port}) + "\n")
        sys.stdout.flush()
        await obey(state)
        state.released.set()
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
