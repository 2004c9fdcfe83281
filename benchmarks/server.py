"""Owns the numbers of the server: what a request costs beside the call in this process, what two
workers do, rows as a stream, small writes of many clients, and the same asked of PostgreSQL and of
ArcadeDB's own server."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

import omnigraph
from benchmarks.measure import Line, milliseconds
from omnigraph.settings import Settings

PEOPLE = 100_000
ROWS = 1_000_000
REQUESTS = 3_000
CLIENTS = 64
SECONDS = 6.0
SCHEMA = """
node Person { name: String @key  age: I64 }
node Event { at: I64 }
edge Knows: Person -> Person
"""
POINT = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
HOPS = (
    "query q($n: String) { match { $p: Person { name: $n }  $p knows $q  $q knows $r } "
    "return { count($r) as n } }"
)
PARAMS = {"n": "person-050000"}
BODY = {"query": POINT, "params": PARAMS}
PEERS = "OMNIGRAPH_BENCH_PEERS"
"""A Python that has arcadedb_embedded; without it ArcadeDB is left out."""


def run(directory: Path) -> list[Line]:
    root = directory / "people"
    _make(root)
    return [
        *point_queries(directory, root),
        *two_workers(directory, root),
        *a_million_rows(directory),
        *small_writes(directory),
        *small_writes_on_s3(directory),
        *peers(directory),
    ]


def _make(root: Path) -> None:
    with omnigraph.init(root, schema=SCHEMA, settings=Settings(durability="relaxed")) as g:
        numbers = np.arange(PEOPLE)
        names = pa.array([f"person-{n:06d}" for n in numbers])
        others = names.take(pa.array((numbers * 7919 + 13) % PEOPLE))
        g.load(pa.table({"name": names, "age": numbers % 90}), type="Person")
        edges = pa.table({"from": pa.concat_arrays([names, names]), "to": [*others, *names[::-1]]})
        g.load(edges, type="Knows")
        g.optimize()


# Servers and clients


@dataclass
class Process:
    """A server that runs; `url` is its address."""

    process: subprocess.Popen[str]
    url: str

    def processor_seconds(self) -> float:
        """Of the server and of all that it has started."""
        wanted, found = {self.process.pid}, 0.0
        stats = []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
                stats.append((int(place.name), int(fields[1]), int(fields[11]) + int(fields[12])))
        for number, parent, _ in sorted(stats):
            if parent in wanted:
                wanted.add(number)
        found = sum(ticks for number, _, ticks in stats if number in wanted)
        return found / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def served(
    directory: Path,
    graphs: Mapping[str, str],
    *,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Process]:
    config = directory / f"server-{workers}.toml"
    roots = "".join(f'{name} = "{root}"\n' for name, root in graphs.items())
    config.write_text(
        f'[server]\nbind = "127.0.0.1:0"\nworkers = {workers}\n[server.graphs]\n{roots}'
        "[server.limits]\nwaiting = 256\npatience = 60\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "serve", "--config", str(config)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "Serving" in line)
        threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
        url = line.split()[-1]
        _until_ready(f"{url}/readyz")
        yield Process(process, url)
    finally:
        process.terminate()
        process.wait(60)


def _drain(stream: object) -> None:
    for _ in stream:  # type: ignore[attr-defined]
        pass


def _until_ready(url: str) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")


class Client:
    """One connection that is kept."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        self._path = parts.path
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = {"Content-Type": "application/json", **(headers or {})}

    def post(self, path: str, body: bytes) -> bytes:
        self._connection.request("POST", self._path + path, body, self._headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{answer.status}: {data[:300]!r}")
        return data


@dataclass
class Measured:
    """What many clients came to together."""

    rate: float
    seconds: list[float]

    def at(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def together(calls: Sequence[Callable[[], object]], *, seconds: float) -> Measured:
    """Each client calls again and again, until the time is over."""
    taken: list[float] = []
    start = threading.Barrier(len(calls) + 1)
    ends = [0.0]

    def work(call: Callable[[], object]) -> None:
        mine = []
        start.wait()
        while time.perf_counter() < ends[0]:
            began = time.perf_counter()
            call()
            mine.append(time.perf_counter() - began)
        taken.extend(mine)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    ends[0] = began + seconds
    start.wait()
    for thread in threads:
        thread.join()
    return Measured(len(taken) / (time.perf_counter() - began), taken)


# What is measured


def point_queries(directory: Path, root: Path) -> list[Line]:
    """Processor time, which a busy machine bends least: of the server for each request, and of this
    process for each call."""
    with omnigraph.open(root, mode="r") as g:
        call = lambda: g.query(POINT, params=PARAMS).to_pylist()  # noqa: E731
        near = _processor_of(call, time.process_time)
    with served(directory, {"people": str(root)}) as server:
        client, body = Client(f"{server.url}/graphs/people"), json.dumps(BODY).encode()
        far = _processor_of(lambda: client.post("/query", body), server.processor_seconds)
        one = together([lambda: client.post("/query", body)], seconds=SECONDS / 2)
        eight = [Client(f"{server.url}/graphs/people") for _ in range(8)]
        many = together(
            [partial(one_of.post, "/query", body) for one_of in eight],
            seconds=SECONDS / 2,
        )
    more = far - near
    return [
        Line(
            "a point query over HTTP beside the call, processor of the server",
            f"{milliseconds(far)} / {milliseconds(near)}: + {milliseconds(more)}",
            "≤ + 0.5 ms",
            more <= 0.0005,
        ),
        Line(
            "point queries of one client, of eight (clients on the same two cores)",
            f"{one.rate:.0f}/s, p99 {milliseconds(one.at(0.99))}; "
            f"{many.rate:.0f}/s, p99 {milliseconds(many.at(0.99))}",
        ),
    ]


def _processor_of(call: Callable[[], object], clock: Callable[[], float]) -> float:
    for _ in range(200):
        call()
    rounds = []
    for _ in range(5):
        began = clock()
        for _ in range(REQUESTS // 5):
            call()
        rounds.append((clock() - began) / (REQUESTS // 5))
    return statistics.median(rounds)


def two_workers(directory: Path, root: Path) -> list[Line]:
    """By `ab`, which is small beside the server; two cores are shared with it."""
    if shutil.which("ab") is None:
        return [Line("two workers beside one", "not measured: there is no ab (apache2-utils)")]
    body = directory / "body.json"
    body.write_text(json.dumps(BODY))
    rates: dict[int, list[float]] = {1: [], 2: []}
    for workers in (1, 2):
        with served(directory, {"people": str(root)}, workers=workers) as server:
            for number in range(4):
                rate = _ab(f"{server.url}/graphs/people/query", body, clients=16)
                if number:
                    rates[workers].append(rate)
    one, two = statistics.median(rates[1]), statistics.median(rates[2])
    return [
        Line(
            "point queries of 16 clients, two workers beside one",
            f"{two / one:.2f} × ({two:.0f}/s, {one:.0f}/s)",
            "≥ 1.7 ×",
            two >= 1.7 * one,
        )
    ]


def _ab(url: str, body: Path, *, clients: int) -> float:
    words = ["ab", "-q", "-k", "-n", str(REQUESTS), "-c", str(clients)]
    words += ["-p", str(body), "-T", "application/json", url]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Requests per second:\s+([0-9.]+)", told)
    assert found is not None, told
    if "Non-2xx" in told:
        raise RuntimeError(told)
    return float(found[1])


def a_million_rows(directory: Path) -> list[Line]:
    """Read by a plain socket that throws them away, beside an export into a file."""
    root = directory / "events"
    with omnigraph.init(root, schema=SCHEMA, settings=Settings(durability="relaxed")) as g:
        g.load(pa.table({"at": np.arange(ROWS)}), type="Event")
        g.optimize()

        def export() -> None:
            g.export(types=["Event"], format="arrow", to=directory / "events.arrow")

        export()
        near = [_seconds(export) for _ in range(3)]
    with served(directory, {"events": str(root)}) as server:
        head = "GET /graphs/events/export?type=Event&format=arrow HTTP/1.1\r\n"
        export_far = [_read_all(server, head) for _ in range(4)][1:]
        query = json.dumps({"query": "match { $e: Event } return { $e.at }"})
        asked = "POST /graphs/events/query HTTP/1.1\r\nContent-Type: application/json\r\n"
        asked += "Accept: application/vnd.apache.arrow.stream\r\n"
        query_far = [_read_all(server, asked, query) for _ in range(4)][1:]
    best, exported, queried = min(near), min(export_far), min(query_far)
    return [
        Line(
            "a million rows as Arrow over HTTP (export) beside the export into a file",
            f"{exported / best:.2f} × ({exported:.2f} s, {best:.2f} s)",
            "≤ 2 ×",
            exported <= 2 * best,
        ),
        Line(
            "a million rows of a query as Arrow over HTTP beside the export into a file",
            f"{queried / best:.2f} × ({queried:.2f} s, {best:.2f} s)",
            "≤ 2 ×",
            queried <= 2 * best,
        ),
    ]


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _read_all(server: Process, head: str, body: str = "") -> float:
    parts = urlsplit(server.url)
    began = time.perf_counter()
    with socket.create_connection((parts.hostname, parts.port)) as sock:
        more = f"Host: 127.0.0.1\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
        sock.sendall((head + more).encode())
        buffer, size, first = bytearray(1 << 20), 0, b""
        while got := sock.recv_into(buffer):
            first = first or bytes(buffer[:12])
            size += got
    assert first.endswith(b"200"), first
    assert size > 7 * ROWS, size
    return time.perf_counter() - began


def small_writes(directory: Path) -> list[Line]:
    """Many clients insert a row each into one branch, on disk and durably."""
    root = str(directory / "writes")
    omnigraph.init(root, schema=SCHEMA).close()
    with served(directory, {"writes": root}) as server:
        one, many = _writing(server, "writes")
    return _write_lines("on disk", one, many)


def small_writes_on_s3(directory: Path) -> list[Line]:
    """The same on an S3 server of this machine, with 30 ms added to each request."""
    from tests.bench.proxy import Proxy
    from tests.bench.s3 import shared_server

    storage = shared_server(directory, owner=os.getpid())
    proxy = Proxy(storage.endpoint)
    try:
        environment = storage.env(endpoint=proxy.endpoint)
        root = storage.url("bench-writes")
        subprocess.run(
            [sys.executable, "-m", "omnigraph", "init", root, "--schema", _schema_in(directory)],
            env={**os.environ, **environment},
            check=True,
            capture_output=True,
        )
        with served(directory, {"writes": root}, environment=environment) as server:
            proxy.shape(latency=0.03)
            one, many = _writing(server, "writes")
            proxy.shape()
    finally:
        proxy.close()
    return _write_lines("on S3 + 30 ms", one, many)


def _schema_in(directory: Path) -> str:
    path = directory / "bench.pg"
    path.write_text(SCHEMA)
    return str(path)


def _writing(server: Process, name: str) -> tuple[Measured, Measured]:
    body = json.dumps({"query": "insert Event { at: 1 }"}).encode()
    clients = [Client(f"{server.url}/graphs/{name}") for _ in range(CLIENTS)]
    calls = [partial(client.post, "/mutate", body) for client in clients]
    together(calls[:1], seconds=1)
    one = together(calls[:1], seconds=SECONDS)
    return one, together(calls, seconds=SECONDS)


def _write_lines(where: str, one: Measured, many: Measured) -> list[Line]:
    return [
        Line(
            f"commits of 64 clients into one branch beside those of one, {where}",
            f"{many.rate / one.rate:.1f} × ({many.rate:.0f}/s, {one.rate:.0f}/s)",
            "≥ 8 ×",
            many.rate >= 8 * one.rate,
        ),
        Line(
            f"one write of 64 clients, {where}: median, p99",
            f"{milliseconds(many.at(0.5))}, {milliseconds(many.at(0.99))}",
        ),
    ]


# Peers


def peers(directory: Path) -> list[Line]:
    """Point reads, two hops and small writes of one client over a connection that is kept. FalkorDB
    has no wheel that holds its server."""
    root = directory / "peer"
    _make(root)
    rates: dict[str, dict[str, float]] = {}
    with served(directory, {"people": str(root)}) as server:
        client = Client(f"{server.url}/graphs/people")
        point, hops = json.dumps(BODY).encode(), json.dumps({**BODY, "query": HOPS}).encode()
        write = json.dumps({"query": "insert Event { at: 1 }"}).encode()
        rates["OmniGraph"] = _three(
            lambda: client.post("/query", point),
            lambda: client.post("/query", hops),
            lambda: client.post("/mutate", write),
        )
    with contextlib.suppress(FileNotFoundError):
        rates["PostgreSQL"] = _postgres(directory)
    if PEERS in os.environ:
        rates["ArcadeDB"] = _arcade(directory, os.environ[PEERS])
    return [
        Line(f"{what}, one client a second", _beside(what, rates))
        for what in ("point read", "two hops", "small write")
    ]


def _beside(what: str, rates: Mapping[str, Mapping[str, float]]) -> str:
    return ", ".join(f"{name} {told[what]:.0f}" for name, told in rates.items() if what in told)


def _three(
    point: Callable[[], object], hops: Callable[[], object], write: Callable[[], object]
) -> dict[str, float]:
    found = {}
    for name, call in (("point read", point), ("two hops", hops), ("small write", write)):
        together([call], seconds=0.5)
        found[name] = together([call], seconds=SECONDS / 2).rate
    return found


def _postgres(directory: Path) -> dict[str, float]:
    """From Debian, with its usual settings: a commit is synced. By pgbench, prepared."""
    bin_ = max(Path("/usr/lib/postgresql").glob("*/bin"))
    data, user = directory / "postgres", "nobody" if os.getuid() == 0 else None
    data.mkdir()
    directory.chmod(0o755)
    if user is not None:
        shutil.chown(data, user)
    port = _free_port()

    def as_user(*words: str, given: str | None = None) -> str:
        done = subprocess.run(
            [str(bin_ / words[0]), *words[1:]],
            user=user,
            input=given,
            capture_output=True,
            text=True,
            cwd="/",
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    as_user("initdb", "-D", str(data), "-U", "bench", "-A", "trust")
    options = f"-p {port} -c unix_socket_directories= -c listen_addresses=127.0.0.1"
    as_user("pg_ctl", "-D", str(data), "-w", "-l", str(data / "log"), "-o", options, "start")
    server = ("-h", "127.0.0.1", "-p", str(port), "-U", "bench")
    try:
        psql = ("psql", *server, "-q", "-d", "postgres", "-v", "ON_ERROR_STOP=1")
        as_user(*psql, given=_POSTGRES)
        found = {}
        for name, script in _SCRIPTS.items():
            path = data / "script.sql"
            path.write_text(script)
            told = as_user(
                *("pgbench", *server, "-n", "-M", "prepared", "-T", "3", "-f", str(path)),
                "postgres",
            )
            rate = re.search(r"tps = ([0-9.]+)", told)
            assert rate is not None, told
            found[name] = float(rate[1])
        return found
    finally:
        as_user("pg_ctl", "-D", str(data), "-m", "fast", "stop")


_POSTGRES = f"""
create table person (name text primary key, age bigint);
create table event (id bigserial primary key, at bigint);
create table knows (a text, b text);
insert into person select 'person-' || lpad(n::text, 6, '0'), n % 90
  from generate_series(0, {PEOPLE - 1}) n;
insert into knows select 'person-' || lpad(n::text, 6, '0'),
  'person-' || lpad(((n * 7919 + 13) % {PEOPLE})::text, 6, '0')
  from generate_series(0, {PEOPLE - 1}) n;
insert into knows select 'person-' || lpad(n::text, 6, '0'),
  'person-' || lpad(({PEOPLE} - 1 - n)::text, 6, '0') from generate_series(0, {PEOPLE - 1}) n;
create index on knows (a);
analyze;
"""
_SCRIPTS = {
    "point read": "select age from person where name = 'person-050000';",
    "two hops": "select count(*) from knows k join knows l on l.a = k.b "
    "where k.a = 'person-050000';",
    "small write": "insert into event (at) values (1);",
}


def _arcade(directory: Path, python: str) -> dict[str, float]:
    """Its server over HTTP, from its wheel."""
    port = _free_port()
    process = subprocess.Popen(
        [python, "-c", _ARCADE, str(directory / "arcade"), str(port), str(PEOPLE)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        if not any("READY" in line for line in process.stdout):
            raise RuntimeError("ArcadeDB did not start")
        word = base64.b64encode(b"root:playwithdata").decode()
        client = Client(f"http://127.0.0.1:{port}", {"Authorization": f"Basic {word}"})

        def command(kind: str, text: str) -> Callable[[], object]:
            body = json.dumps({"language": "sql", "command": text}).encode()
            return lambda: client.post(f"/api/v1/{kind}/people", body)

        return _three(
            command("query", "select age from Person where name = 'person-050000'"),
            command(
                "query",
                "select out('Knows').out('Knows').size() as n from Person "
                "where name = 'person-050000'",
            ),
            command("command", "insert into Event set at = 1"),
        )
    finally:
        process.kill()
        process.wait()


_ARCADE = """
import sys
import arcadedb_embedded as arcadedb
place, port, people = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
server = arcadedb.create_server(
    place, root_password="playwithdata", config={"http_port": port, "host": "127.0.0.1"}
)
server.start()
db = server.create_database("people")
for text in (
    "create vertex type Person", "create property Person.name string",
    "create property Person.age long", "create index on Person (name) unique",
    "create edge type Knows", "create document type Event",
):
    db.command("sql", text)
numbers = range(people)
for start in range(0, people, 10_000):
    with db.transaction():
        for n in numbers[start : start + 10_000]:
            db.command("sql", f"insert into Person set name = 'person-{n:06d}', age = {n % 90}")
with db.transaction():
    for a in ("person-050000", "person-%06d" % ((50_000 * 7919 + 13) % people), "person-049999"):
        number = int(a[7:])
        for other in ((number * 7919 + 13) % people, people - 1 - number):
            db.command(
                "sql",
                f"create edge Knows from (select from Person where name = '{a}') "
                f"to (select from Person where name = 'person-{other:06d}')",
            )
print("READY", flush=True)
sys.stdin.read()
"""


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
