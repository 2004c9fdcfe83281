"""The server as a process: it starts or refuses to, is told to end, is killed, takes a new
configuration."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3

import omnigraph
from omnigraph.errors import InvalidArgument
from omnigraph.server.config import read_config
from omnigraph.server.description import description
from tests.docs.examples import make_graph

TOP = Path(__file__).parents[2]
G = "/graphs/people"


@pytest.fixture
def root(tmp_path: Path) -> str:
    make_graph(str(tmp_path / "people.graph")).close()
    return str(tmp_path / "people.graph")


class Running:
    """A server that was started by its command; `log` are its lines so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: list[str] = []
        self._found = threading.Event()
        self.url = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.pool = urllib3.PoolManager(retries=False, maxsize=16)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            match = re.match(r"Serving .* at (https?://\S+)", line)
            if match and not self._found.is_set():
                self.url = match[1]
                self._found.set()
        self._found.set()

    def end(self) -> None:
        """Once the process has ended, and with it all that it started."""
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        self.pool.clear()

    def wait(self) -> Running:
        assert self._found.wait(60), self.log
        assert self.url, self.log
        for _ in range(600):
            try:
                if self.pool.request("GET", f"{self.url}/readyz").status == 200:
                    return self
            except urllib3.exceptions.HTTPError:
                pass
            time.sleep(0.05)
        raise AssertionError(self.log)

    def ask(self, method: str, path: str, body: object = None) -> urllib3.BaseHTTPResponse:
        return (
            self.pool.request(method, self.url + path, json=body, timeout=urllib3.Timeout(30))
            if body is not None
            else self.pool.request(method, self.url + path)
        )


@contextmanager
def running(arguments: Sequence[str], directory: Path) -> Iterator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "serve", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env={**os.environ, "OMNIGRAPH_DURABILITY": "relaxed"},
    )
    found = Running(process)
    try:
        yield found
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        found.end()


def test_a_newcomer_says_serve_and_asks(root: str, tmp_path: Path) -> None:
    with running([root, "--bind", "127.0.0.1:0"], tmp_path) as server:
        server.wait()
        query = {"query": "match { $p: Person } return { count($p) as people }"}
        found = server.ask("POST", f"{G}/query", query)
        assert found.json()["rows"] == [{"people": 3}]
        metrics = server.ask("GET", "/metrics").data.decode()
        assert (
            'omnigraph_http_requests_total{method="POST",route="/graphs/{graph}/query"' in metrics
        )
        assert "omnigraph_queue_seconds_count" in metrics
        served = server.ask("GET", "/openapi.json").data
        assert served == description()
        server.process.terminate()
        assert server.process.wait(30) == 0
    lines = [json.loads(line) for line in server.log if line.startswith("{")]
    asked = next(line for line in lines if line.get("route") == "/graphs/{graph}/query")
    assert (asked["graph"], asked["status"]) == ("people", 200)
    assert asked["request_id"]
    assert "match" not in "".join(server.log)


def test_a_slow_query_is_logged_with_its_plan(root: str, tmp_path: Path) -> None:
    (tmp_path / "omnigraph.toml").write_text("[server.log]\nslow_query = 0.000001\n")
    with running([root, "--bind", "127.0.0.1:0"], tmp_path) as server:
        server.wait()
        server.ask("POST", f"{G}/query", {"query": "match { $p: Person } return { $p.name }"})
    slow = next(line for line in server.log if '"slow query"' in line)
    told = json.loads(slow)
    assert "scan Person" in told["plan"]
    assert "query" not in told
    assert told["query_digest"]


def test_a_drain_loses_no_write_that_was_acknowledged(root: str, tmp_path: Path) -> None:
    acknowledged: list[str] = []
    with running([root, "--bind", "127.0.0.1:0"], tmp_path) as server:
        server.wait()

        def write(number: int) -> None:
            for one in range(200):
                name = f"w{number}-{one}"
                query = {"query": f'insert Person {{ name: "{name}" }}'}
                try:
                    done = server.ask("POST", f"{G}/mutate", query)
                except urllib3.exceptions.HTTPError:
                    return
                if done.status == 200:
                    acknowledged.append(name)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 8:
            time.sleep(0.01)
        server.process.terminate()
        for thread in threads:
            thread.join()
        assert server.process.wait(40) == 0
    assert len(acknowledged) < 800
    with omnigraph.open(root) as g:
        names = set(g.scan("Person", columns=["name"]).read_all()["name"].to_pylist())
    assert set(acknowledged) <= names


def test_a_worker_that_is_killed_is_started_again(root: str, tmp_path: Path) -> None:
    with running([root, "--bind", "127.0.0.1:0", "--workers", "2"], tmp_path) as server:
        server.wait()
        children = _children(server.process.pid)
        assert len(children) == 2
        os.kill(children[0], signal.SIGKILL)
        for _ in range(1200):
            now = _children(server.process.pid)
            if children[0] not in now and len(now) == 2:
                break
            time.sleep(0.05)
        assert len(_children(server.process.pid)) == 2
        server.pool.clear()
        server.wait()
        done = server.ask("POST", f"{G}/mutate", {"query": 'insert Person { name: "Dan" }'})
        assert done.status == 200
        server.process.terminate()
        assert server.process.wait(40) == 0
    with omnigraph.open(root) as g:
        assert g.count("Person") == 4


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]


def test_a_reload_takes_what_is_right_and_leaves_what_is_wrong(root: str, tmp_path: Path) -> None:
    make_graph(str(tmp_path / "second")).close()
    file = tmp_path / "omnigraph.toml"
    file.write_text('[server]\nbind = "127.0.0.1:0"\n[server.graphs]\n' + f'people = "{root}"\n')
    with running([], tmp_path) as server:
        server.wait()
        file.write_text(file.read_text() + f'second = "{tmp_path / "second"}"\n')
        server.process.send_signal(signal.SIGHUP)
        for _ in range(200):
            if server.ask("GET", "/graphs/second").status == 200:
                break
            time.sleep(0.05)
        assert server.ask("GET", "/graphs/second").status == 200
        file.write_text(file.read_text() + "wat = 1\n[server.wat]\n")
        assert server.ask("POST", "/reload").status == 400
        assert server.ask("GET", "/graphs/second").status == 200


@pytest.mark.parametrize(
    ("arguments", "toml", "told"),
    [
        ([], "", "no graph to serve"),
        (["--bind", "0.0.0.0:0", "ROOT"], "", "other machines"),
        (["--bind", "nonsense", "ROOT"], "", "HOST:PORT"),
        (["--workers", "0", "ROOT"], "", "workers"),
        (["one=ROOT", "two=ROOT"], "", "one root"),
        (["A B=ROOT"], "", "name of a graph"),
        (["ROOT"], "[server]\nwat = 1\n", "'wat'"),
        (["ROOT"], "[server.limits]\ntimeot = 1\n", "timeout"),
        (["ROOT"], "[server.limits]\ntimeout = true\n", "float"),
        (["ROOT"], '[server.tls]\ncert = "x"\nkey = "y"\n', "TLS"),
        (["ROOT"], "[server", "cannot be read"),
    ],
)
def test_what_is_wrong_refuses_to_start(
    root: str, tmp_path: Path, arguments: list[str], toml: str, told: str
) -> None:
    path = tmp_path / "omnigraph.toml"
    path.write_text(toml)
    words = [word.replace("ROOT", root) for word in arguments]
    roots = [word for word in words if root in word]
    flags = dict(zip(words[::2], words[1::2], strict=False)) if words[:1] != roots[:1] else {}
    workers = flags.get("--workers")
    with pytest.raises(InvalidArgument, match=re.escape(told)):
        read_config(
            path,
            {},
            roots,
            bind=flags.get("--bind"),
            workers=None if workers is None else int(workers),
        )


def test_a_flag_wins_over_a_variable_and_that_over_the_file(root: str, tmp_path: Path) -> None:
    path = tmp_path / "omnigraph.toml"
    path.write_text('[server]\nworkers = 2\nbind = "127.0.0.1:1"\n[server.limits]\nstreams = 5\n')
    environment = {
        "OMNIGRAPH_SERVER_WORKERS": "3",
        "OMNIGRAPH_SERVER_LIMITS_STREAMS": "7",
        "OMNIGRAPH_SERVER_BIND": "127.0.0.1:2",
    }
    found = read_config(path, environment, [root], bind="127.0.0.1:3")
    assert (found.workers, found.bind, found.limits.streams) == (3, "127.0.0.1:3", 7)
    with pytest.raises(InvalidArgument, match="OMNIGRAPH_SERVER_WAT"):
        read_config(path, {"OMNIGRAPH_SERVER_WAT": "1"}, [root])


def test_a_server_without_a_graph_that_opens_does_not_start(tmp_path: Path) -> None:
    with running([str(tmp_path / "nothing"), "--bind", "127.0.0.1:0"], tmp_path) as server:
        assert server.process.wait(60) == 3


def test_the_description_is_that_which_is_kept() -> None:
    path = TOP / "docs" / "user" / "openapi.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(description() + b"\n")
    assert path.read_bytes() == description() + b"\n", "the routes have changed: run `make docs`"
    paths = json.loads(description())["paths"]
    assert {"/graphs/{graph}/query", "/graphs/{graph}/merge", "/whoami", "/graphs"} <= paths.keys()
    assert "/web/{path}" not in paths
