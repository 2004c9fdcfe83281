"""Many at once: writers of one branch, connections, slow and hungry queries beside quick ones; and
storage that fails."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.server.graphs import Graphs
from omnigraph.server.limits import ServerLimits
from omnigraph.server.service import Service
from tests.bench.proxy import Proxy, Rule
from tests.docs.examples import make_graph
from tests.server.serving import Answer, Site, read_all, serving

G = "/graphs/people"


def all_at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each gives, all begun together."""
    found: list[Any] = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def work(number: int) -> None:
        start.wait()
        found[number] = calls[number]()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def patient(call: Callable[[], Answer]) -> Answer:
    """Sent again while the server says that it has too much to do."""
    answer = call()
    for _ in range(200):
        if answer.status not in (429, 503):
            break
        time.sleep(0.05)
        answer = call()
    return answer


def test_64_writers_of_one_branch_each_land_once_and_failures_are_their_own(
    own: Site, graph: omnigraph.Graph
) -> None:
    """Every fourth breaks a rule, and every write is sent twice with its key."""

    def write(number: int) -> Callable[[], list[Answer]]:
        text = f'insert Person {{ name: "w{number:02}" }}'
        if number % 4 == 3:
            text += f' insert Knows {{ from: "w{number:02}", to: "nobody" }}'
        body = {"query": text, "message": f"m{number}"}

        def once() -> Answer:
            return own.post(f"{G}/mutate", body, idempotency_key=f"key-{number}")

        return lambda: [patient(once), patient(once)]

    before = graph.count("Person")
    answers = all_at_once([write(number) for number in range(64)])
    for number, (first, again) in enumerate(answers):
        if number % 4 == 3:
            assert (first.status, first.code) == (422, "invalid_data"), first.body
            assert (again.status, again.code) == (422, "invalid_data"), again.body
        else:
            assert (first.status, first.json["repeated"]) == (200, False), first.body
            assert (again.status, again.json["repeated"]) == (200, True), again.body
            assert again.json["commit"] == first.json["commit"]
    commits = {first.json["commit"]: f"m{n}" for n, (first, _) in enumerate(answers) if n % 4 != 3}
    assert len(commits) == 48  # each has a commit of its own
    logged = {one.id: one.message for one in graph.log() if one.id in commits}
    assert logged == commits
    assert graph.count("Person") == before + 48
    assert graph.verify().ok


def test_who_writes_on_and_on_does_not_keep_others_from_writing(own: Site) -> None:
    """One write comes while seven writers go on without a pause."""
    ended, counts = threading.Event(), [0] * 7

    def insert(name: str) -> Answer:
        return own.post(f"{G}/mutate", {"query": f'insert Person {{ name: "{name}" }}'})

    def busy(number: int) -> Callable[[], None]:
        def go() -> None:
            while not ended.is_set():
                if patient(lambda: insert(f"b{number}-{counts[number]}")).status == 200:
                    counts[number] += 1

        return go

    def late() -> int:
        try:
            while sum(counts) < 7:
                time.sleep(0.01)
            return patient(lambda: insert("late")).status
        finally:
            ended.set()

    assert all_at_once([*(busy(n) for n in range(7)), late])[-1] == 200


def test_a_thousand_connections_are_open_and_one_is_answered(site: Site) -> None:
    held = [socket.create_connection(site.address, timeout=30) for _ in range(1_000)]
    try:
        assert site.get(G).status == 200
        request = b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        for sock in held[::100]:
            sock.sendall(request)
            assert sock.recv(4096).startswith(b"HTTP/1.1 200")
    finally:
        for sock in held:
            sock.close()
    assert site.get(G).status == 200


def test_beyond_the_connections_that_it_takes_a_server_closes_new_ones(people: Path) -> None:
    limits = ServerLimits(connections=20)
    with serving(Service(Graphs({"people": str(people)}), limits)) as site:
        held = [socket.create_connection(site.address, timeout=10) for _ in range(40)]
        time.sleep(0.3)
        request = b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        answered = 0
        for sock in held:
            try:
                sock.sendall(request)
                answered += read_all(sock).startswith(b"HTTP/1.1 200")
            except OSError:
                continue
            finally:
                sock.close()
        assert 1 <= answered <= 20


SLOW = (
    "match { "
    + " ".join(f"$p{i}: Person" for i in range(16))
    + " } return { $p0.name } order { $p1.name }"
)
QUICK = {"query": "match { $p: Person } return { $p.name }"}


def test_slow_queries_leave_the_others_alone_and_end_with_their_clients(people: Path) -> None:
    limits = ServerLimits(read_threads=4, patience=30.0)
    with serving(Service(Graphs({"people": str(people)}), limits)) as site:
        body = json.dumps({"query": SLOW, "timeout": 60}).encode()
        head = (
            b"POST /graphs/people/query HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        slow = [socket.create_connection(site.address) for _ in range(3)]
        try:
            for sock in slow:
                sock.sendall(head + body)
            until(lambda: site.service.pools.read.busy >= 3)
            for _ in range(5):
                assert site.post(f"{G}/query", QUICK).status == 200
        finally:
            for sock in slow:
                sock.close()
        until(lambda: site.service.pools.read.busy == 0)


def until(found: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_hungry_query_is_refused_and_its_memory_is_free_again(people: Path) -> None:
    limits = ServerLimits(memory=64 << 20, query_memory=32 << 20, patience=0.2)
    with serving(Service(Graphs({"people": str(people)}), limits)) as site:
        body = {
            "query": SLOW.replace("count($a) as n", "collect($a) as n"),
            "memory_limit": 100_000,
        }
        refused = site.post(f"{G}/query", body)
        assert (refused.status, refused.code) == (413, "memory_limit"), refused.body
        assert site.post(f"{G}/query", {**QUICK, "memory_limit": 1 << 40}).code == "memory_limit"
        assert site.post(f"{G}/query", QUICK).status == 200
        assert site.service.admission.reserved == 0


@pytest.mark.s3
def test_no_write_is_lost_or_doubled_while_storage_fails(proxied_root: str, proxy: Proxy) -> None:
    """Between server and store requests are cut, answers are lost, and puts land late."""
    make_graph(proxied_root).close()
    limits = ServerLimits(timeout=60)
    with serving(Service(Graphs({"people": proxied_root}), limits)) as site:
        rules = [
            Rule("drop_after", verb="PUT", key_class="version", nth=2),
            Rule("drop_before", verb="PUT", key_class="version", nth=4),
            Rule("status", verb="PUT", nth=6),
            Rule("drop_after", verb="PUT", key_class="version", nth=9),
            Rule("land_late", verb="PUT", key_class="version", nth=12),
        ]
        done: list[int] = []

        def write(number: int) -> Callable[[], None]:
            body = {"query": f'insert Person {{ name: "s{number:02}" }}'}

            def go() -> None:
                for _ in range(30):
                    told = site.post(f"{G}/mutate", body, idempotency_key=f"s{number}")
                    if told.status == 200:
                        done.append(number)
                        return
                    assert told.status in (503, 504), told.body
                    assert told.json["retryable"] or told.json["applied"] is None
                    time.sleep(0.1)

            return go

        with proxy.rules(*rules):
            all_at_once([write(number) for number in range(12)])
        assert sorted(done) == list(range(12))
        found = site.post(f"{G}/query", {**QUICK, "limit": 1000}).json["rows"]
    names = [row["p.name"] for row in found]
    assert sorted(name for name in names if name.startswith("s")) == [
        f"s{number:02}" for number in range(12)
    ]
