"""The proxy counts what clients do, changes nothing it lets through, and breaks what it is told."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import lance
import obstore
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from obstore.exceptions import AlreadyExistsError, GenericError

from tests.bench.proxy import Proxy, Rule
from tests.bench.s3 import S3Server

pytestmark = pytest.mark.s3


@pytest.fixture
def store(proxy: Proxy, s3_server: S3Server, s3_prefix: str) -> obstore.store.S3Store:
    return s3_server.store(s3_prefix, endpoint=proxy.endpoint)


@pytest.fixture
def behind(s3_server: S3Server, s3_prefix: str) -> obstore.store.S3Store:
    """The same objects without the proxy, to see what really happened."""
    return s3_server.store(s3_prefix)


def holds(store: obstore.store.S3Store, key: str) -> bool:
    try:
        obstore.head(store, key)
    except FileNotFoundError:
        return False
    return True


def test_requests_are_counted_by_verb_and_class_in_order(
    proxy: Proxy, store: obstore.store.S3Store
) -> None:
    with proxy.counting() as seen:
        obstore.put(store, "__manifest/main/1.json", b"one", mode="create")
        obstore.get(store, "__manifest/main/1.json").bytes()
        obstore.head(store, "__manifest/main/1.json")
        obstore.list(store, "__manifest/main").collect()
        obstore.delete(store, "__manifest/main/1.json")
    assert [request.verb for request in seen.log] == ["PUT", "GET", "HEAD", "LIST", "DELETE"]
    assert seen.by_class == {"version": 5}
    assert (seen.reads, seen.writes) == (3, 2)
    assert seen.log[0].bytes_in == 3
    assert all(r.started <= later.started for r, later in zip(seen.log, seen.log[1:], strict=False))


def test_keys_with_odd_letters_keep_their_signature(
    proxy: Proxy, store: obstore.store.S3Store
) -> None:
    key = "a b+c=%25/é~'(x)"
    obstore.put(store, key, b"odd")
    with proxy.counting() as seen:
        assert bytes(obstore.get(store, key).bytes()) == b"odd"
    assert seen.log[0].key.endswith(key)


def test_what_a_client_writes_reaches_the_upstream_letter_by_letter() -> None:
    raw = "/bucket/%7Ea%2fb+c//./d?x=%7e&y=a+b&&z"
    received: list[tuple[str, str | None, bytes]] = []

    class Upstream(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, self.headers["Host"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        proxy = Proxy(f"http://127.0.0.1:{upstream.server_port}")
        connection = HTTPConnection("127.0.0.1", proxy.port)
        connection.request("PUT", raw, body=b"as it is", headers={"Host": "signed.example"})
        assert connection.getresponse().status == 200
        connection.close()
        proxy.close()
        upstream.shutdown()
    assert received == [(raw, "signed.example", b"as it is")]


def test_large_uploads_and_ranges_pass_unchanged(store: obstore.store.S3Store) -> None:
    data = os.urandom(12_000_000)
    obstore.put(store, "large", data)
    assert bytes(obstore.get(store, "large").bytes()) == data
    assert (
        bytes(obstore.get_range(store, "large", start=5_000_000, end=5_000_100))
        == (data[5_000_000:5_000_100])
    )


def test_a_counting_block_sees_only_its_own_requests(
    proxy: Proxy, store: obstore.store.S3Store
) -> None:
    obstore.put(store, "x", b"")
    with proxy.counting() as seen:
        pass
    assert seen.log == []


def test_put_if_absent_has_one_winner(proxy: Proxy, store: obstore.store.S3Store) -> None:
    def attempt(number: int) -> bool:
        try:
            obstore.put(store, "once", str(number).encode(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(8)))
    assert won.count(True) == 1
    assert bytes(obstore.get(store, "once").bytes()) == str(won.index(True)).encode()


@pytest.mark.parametrize(("action", "landed"), [("drop_before", False), ("drop_after", True)])
def test_a_dropped_put_has_its_effect_or_not_as_asked(
    proxy: Proxy,
    store: obstore.store.S3Store,
    behind: obstore.store.S3Store,
    action: str,
    landed: bool,
) -> None:
    with proxy.rules(Rule(action, verb="PUT")), pytest.raises(GenericError):  # type: ignore[arg-type]
        obstore.put(store, "k", b"1", mode="create")
    assert holds(behind, "k") is landed


def test_a_rule_takes_the_nth_matching_request_only(
    proxy: Proxy, store: obstore.store.S3Store, behind: obstore.store.S3Store
) -> None:
    with proxy.rules(Rule("status", verb="PUT", key_contains="/k", nth=2, times=2)):
        obstore.put(store, "k1", b"")
        obstore.put(store, "other", b"")
        for key in ("k2", "k3"):
            with pytest.raises(GenericError, match="503"):
                obstore.put(store, key, b"")
        obstore.put(store, "k4", b"")
    assert [holds(behind, f"k{n}") for n in (1, 2, 3, 4)] == [True, False, False, True]


@pytest.mark.parametrize(("action", "landed"), [("hang_before", False), ("hang_after", True)])
def test_a_hang_ends_when_its_time_is_over(
    proxy: Proxy,
    store: obstore.store.S3Store,
    behind: obstore.store.S3Store,
    action: str,
    landed: bool,
) -> None:
    began = time.monotonic()
    rule = Rule(action, verb="PUT", seconds=0.3)  # type: ignore[arg-type]
    with proxy.rules(rule), pytest.raises(GenericError):
        obstore.put(store, "k", b"1", mode="create")
    assert time.monotonic() - began >= 0.3
    assert holds(behind, "k") is landed


def test_clearing_the_rules_ends_a_hang(proxy: Proxy, store: obstore.store.S3Store) -> None:
    with ThreadPoolExecutor(1) as pool:
        with proxy.rules(Rule("hang_before", verb="PUT", seconds=60)):
            put = pool.submit(obstore.put, store, "k", b"1")
            while not proxy.snapshot().log:
                time.sleep(0.01)
        with pytest.raises(GenericError):
            put.result(timeout=10)


def test_a_put_can_land_after_its_writer_was_told_that_it_failed(
    proxy: Proxy, store: obstore.store.S3Store, behind: obstore.store.S3Store
) -> None:
    with proxy.rules(Rule("land_late", verb="PUT", seconds=0.3)), pytest.raises(GenericError):
        obstore.put(store, "k", b"1", mode="create")
    assert not holds(behind, "k")
    deadline = time.monotonic() + 5
    while not holds(behind, "k") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert holds(behind, "k")


def test_latency_is_paid_by_every_request(proxy: Proxy, store: obstore.store.S3Store) -> None:
    obstore.put(store, "k", b"")
    proxy.shape(latency=0.04)
    began = time.perf_counter()
    for _ in range(5):
        obstore.get(store, "k").bytes()
    assert 0.2 <= time.perf_counter() - began < 1.0


def test_the_cap_makes_requests_wait_for_each_other(
    proxy: Proxy, store: obstore.store.S3Store
) -> None:
    obstore.put(store, "k", b"")
    proxy.shape(latency=0.05, concurrency=2)
    began = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: obstore.get(store, "k").bytes(), range(8)))
    assert time.perf_counter() - began >= 4 * 0.05


def test_a_list_for_the_first_key_is_one_request_however_many_there_are(
    proxy: Proxy, store: obstore.store.S3Store, behind: obstore.store.S3Store
) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: obstore.put(behind, f"v/{n:06}", b""), range(1005)))
    with proxy.counting() as seen:
        first = next(iter(obstore.list(store, "v", chunk_size=1)))
        time.sleep(0.1)
    assert first[0]["path"] == "v/000000"
    assert seen.by_verb == {"LIST": 1}
    with proxy.counting() as seen:
        assert len(obstore.list(store, "v").collect()) == 1005
    assert seen.by_verb == {"LIST": 2}


def test_lance_costs_what_the_design_counts_on(
    proxy: Proxy, s3_server: S3Server, s3_prefix: str
) -> None:
    options = s3_server.options(endpoint=proxy.endpoint)
    uri = s3_server.url(f"{s3_prefix}/nodes/t")
    rows = pa.table({"id": ["a"]})
    lance.write_dataset(rows, uri, storage_options=options, enable_stable_row_ids=False)
    with proxy.counting() as opened:
        table = lance.dataset(uri, version=1, storage_options=options)
    with proxy.counting() as written:
        fragments = write_fragments(rows, table, mode="append")
    append = lance.LanceOperation.Append(fragments)
    with proxy.counting() as committed:
        new = lance.LanceDataset.commit(table, append, read_version=1, detached=True)
    with proxy.counting() as reopened:
        lance.dataset(uri, version=new.version, storage_options=options)
    assert opened.by_verb_and_class == {("HEAD", "table_version"): 1, ("GET", "table_version"): 1}
    assert written.by_verb_and_class == {("PUT", "data"): 1}
    assert committed.by_verb_and_class == {("PUT", "transaction"): 1, ("PUT", "table_version"): 1}
    assert (reopened.reads, reopened.writes) == (2, 0)


def test_lance_survives_a_lost_answer_to_its_version_file(
    proxy: Proxy, s3_server: S3Server, s3_prefix: str
) -> None:
    options = s3_server.options(endpoint=proxy.endpoint)
    rows = pa.table({"id": ["a"]})
    table = lance.write_dataset(
        rows, s3_server.url(f"{s3_prefix}/t"), storage_options=options, enable_stable_row_ids=False
    )
    append = lance.LanceOperation.Append(write_fragments(rows, table, mode="append"))
    with proxy.counting() as seen, proxy.rules(Rule("drop_after", key_class="table_version")):
        new = lance.LanceDataset.commit(table, append, read_version=1, detached=True)
    assert new.count_rows() == 2
    assert [r.fault for r in seen.log if r.fault] == ["drop_after"]


def test_an_unknown_fault_is_refused(proxy: Proxy, store: obstore.store.S3Store) -> None:
    with pytest.raises(ValueError, match="no such fault"):
        proxy.add(Rule("explode"))  # type: ignore[arg-type]
