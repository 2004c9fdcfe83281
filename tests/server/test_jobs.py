"""Jobs over HTTP: asked for, listed, followed, cancelled; loads of files and of large bodies; taken
up when the process that ran them is gone."""

from __future__ import annotations

import io
import json
import tarfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.upkeep.jobs import GraphJob
from omnigraph.model.caller import Caller
from omnigraph.policy.roles import Roles
from omnigraph.server import file_jobs, jobs
from omnigraph.server.graphs import Graphs
from omnigraph.server.limits import ServerLimits
from omnigraph.server.service import Service
from omnigraph.store.job_files import id_of_key
from tests.bench.aging import MovingRuntime
from tests.docs.examples import make_graph
from tests.server.serving import Answer, Site, serving

PATH = "/graphs/people/jobs"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    make_graph(str(tmp_path / "people")).close()
    (tmp_path / "in").mkdir()
    return tmp_path


@pytest.fixture
def site(place: Path) -> Iterator[Site]:
    limits = ServerLimits(load_job_bytes=1_000)
    graphs = Graphs({"people": str(place / "people")})
    with serving(Service(graphs, limits, sources=(str(place / "in"),))) as found:
        yield found


def ended(site: Site, begun: Answer) -> dict[str, Any]:
    assert begun.status == 202, begun.body
    location = begun.headers["location"]
    assert location == f"{PATH}/{begun.json['id']}"
    until = time.monotonic() + 60
    while True:
        job: dict[str, Any] = site.get(location).json
        if job["state"] not in ("queued", "running"):
            return job
        assert time.monotonic() < until, job
        time.sleep(0.02)


def test_a_job_is_asked_for_and_followed(site: Site) -> None:
    begun = site.post(PATH, {"kind": "verify", "deep": True})
    job = ended(site, begun)
    assert (job["kind"], job["state"], job["arguments"]) == ("verify", "done", {"deep": True})
    assert job["result"]["ok"] is True
    assert [one["id"] for one in site.get(PATH).json["items"]] == [job["id"]]
    told = site.get(f"{PATH}/{job['id']}/events", accept="text/event-stream").body.decode()
    assert "event: done" in told
    data = next(line for line in told.splitlines() if line.startswith("data: "))
    assert json.loads(data.removeprefix("data: "))["id"] == job["id"]
    assert site.ask("DELETE", f"{PATH}/{job['id']}").code == "job_ended"
    assert site.get(f"{PATH}/01M7JGQ6QC0X247AYXK9H7M2MN").code == "job_not_found"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "dance"}, "invalid_argument"),
        ({"kind": "verify", "deeep": True}, "invalid_argument"),
        ({"kind": "load"}, "invalid_argument"),
        ({"kind": "load", "uri": "/etc/passwd"}, "denied"),
        ({"kind": "load", "uri": "in/../../etc/passwd"}, "denied"),
        ({"kind": "load", "uri": []}, "invalid_argument"),
        ({"kind": "load", "uri": 5}, "invalid_argument"),
        ({"kind": "load", "upload": {"suffix": "/../x"}}, "invalid_argument"),
        ({"kind": "verify", "by": {"roles": ["admin"]}}, "invalid_argument"),
        ({"kind": "export", "uri": "/tmp/export.jsonl"}, "denied"),
    ],
)
def test_a_wrong_job_is_refused_at_once(site: Site, body: dict[str, Any], code: str) -> None:
    assert site.post(PATH, body).code == code
    assert site.get(PATH).json["items"] == []


def test_a_job_that_fails_tells_why(site: Site) -> None:
    job = ended(site, site.post(PATH, {"kind": "resume", "intent": "01M7JGQ6QC0X247AYXK9H7M2MN"}))
    assert (job["state"], job["problem"]["code"]) == ("failed", "intent_not_found")
    told = site.get(f"{PATH}/{job['id']}/events").body.decode()
    assert "event: failed" in told


def test_the_same_key_is_the_same_job(site: Site) -> None:
    first = site.post(PATH, {"kind": "verify"}, idempotency_key="k1")
    again = site.post(PATH, {"kind": "verify"}, idempotency_key="k1")
    assert first.json["id"] == again.json["id"]
    assert ended(site, again)["state"] == "done"
    other = site.post(PATH, {"kind": "verify", "deep": True}, idempotency_key="k1")
    assert (other.status, other.code) == (409, "idempotency_mismatch")
    assert len(site.get(PATH).json["items"]) == 1


def test_files_below_the_sources_are_loaded_and_written(site: Site, place: Path) -> None:
    (place / "in" / "Person.csv").write_text("name,age\nDan,5\nEve,\n")
    (place / "in" / "outside.csv").symlink_to("/etc/passwd")
    assert site.post(PATH, {"kind": "load", "uri": str(place / "in")}).code == "denied"
    (place / "in" / "outside.csv").unlink()
    loaded = ended(site, site.post(PATH, {"kind": "load", "uri": str(place / "in")}))
    assert loaded["state"] == "done", loaded
    assert loaded["result"]["counts"]["Person"]["inserted"] == 2
    out = str(place / "in" / "all.jsonl")
    written = ended(site, site.post(PATH, {"kind": "export", "uri": out}))
    assert written["state"] == "done", written
    assert len(Path(out).read_text().splitlines()) == sum(written["result"]["counts"].values())
    twice = ended(site, site.post(PATH, {"kind": "export", "uri": out}))
    assert (twice["state"], twice["problem"]["code"]) == ("failed", "already_exists")


def rows(count: int) -> bytes:
    return b"".join(b'{"type": "Person", "data": {"name": "p%d"}}\n' % n for n in range(count))


def test_a_large_body_becomes_a_job(site: Site) -> None:
    query = "/graphs/people/load?on_error=quarantine"
    data = rows(200) + b'{"type": "Person", "data": {"name": 5}}\n'
    begun = site.ask("POST", query, data, content_type="application/jsonl", idempotency_key="big")
    job = ended(site, begun)
    assert job["state"] == "done", job
    assert (job["result"]["counts"]["Person"]["inserted"], job["result"]["rejected"]) == (200, 1)
    lines = site.get(f"{PATH}/{job['id']}/rejected", accept="application/jsonl").body
    (row,) = map(json.loads, lines.splitlines())
    assert row["type"] == "Person"
    again = site.ask("POST", query, data, content_type="application/jsonl", idempotency_key="big")
    assert again.json["id"] == job["id"]
    assert not file_jobs.spool_of(job["id"]).exists()


def test_an_archive_holds_several_files(site: Site) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in (
            ("0000.Person.csv", b"name\nZoe\n"),
            ("0001..jsonl", b'{"edge": "Knows", "from": "Zoe", "to": "Ada"}\n'),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    job = ended(
        site,
        site.ask("POST", "/graphs/people/load", made.getvalue(), content_type="application/x-tar"),
    )
    assert job["state"] == "done", job


@pytest.mark.parametrize("name", ["../../etc/x", "0000.Person", "0000./../x.csv", "/abs.P.csv"])
def test_an_archive_leads_nowhere_else(site: Site, name: str) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    job = ended(
        site,
        site.ask("POST", "/graphs/people/load", made.getvalue(), content_type="application/x-tar"),
    )
    assert (job["state"], job["problem"]["code"]) == ("failed", "invalid_argument")


def test_a_job_is_cancelled_wherever_it_runs(site: Site, place: Path) -> None:
    with omnigraph.open(str(place / "people")) as g:
        waiting = g.jobs.submit("verify")
        told = site.ask("DELETE", f"{PATH}/{waiting.id}").json
    assert (told["state"], told["cancelling"]) == ("cancelled", True)


def test_what_a_process_left_is_taken_up(
    site: Site, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was killed left a claimed job and the body that it had been sent."""
    key = f"somebody/{uuid.uuid4()}"
    known = id_of_key(key)
    body = place / "body.jsonl"
    body.write_bytes(rows(50))
    upload = {"suffix": ".jsonl", "coding": None, "digest": file_jobs.digest_of(body)}
    by = {"roles": ["writer"], "groups": []}
    arguments = {"upload": upload, "mode": "append", "engine": "local"}
    file_jobs.keep_body(body, GraphJob(known, "load", "queued", arguments))
    past = MovingRuntime()
    past.ahead = -120.0
    with omnigraph.open(str(place / "people"), runtime=past) as g:
        g.jobs.submit("load", arguments | {"by": by}, actor="somebody", idempotency_key=key)
        foreign = g.jobs.submit("verify", {}, actor="eve")
        before = g.count("Person")
    monkeypatch.setattr(jobs, "LOOK", 0.1)
    limits, graphs = ServerLimits(), Graphs({"people": str(place / "people")})
    with serving(Service(graphs, limits)) as other:
        until = time.monotonic() + 30
        while other.get(f"{PATH}/{known}").json["state"] != "done":
            assert time.monotonic() < until, other.get(f"{PATH}/{known}").json
            time.sleep(0.05)
        assert other.get(f"{PATH}/{foreign.id}").json["state"] == "queued"
        (told,) = [one for one in other.get(PATH).json["items"] if one["id"] == known]
        assert told["result"]["counts"]["Person"]["inserted"] == 50
        assert set(told["arguments"]) == {"mode", "engine"}
    with omnigraph.open(str(place / "people")) as g:
        assert g.count("Person") == before + 50
        assert g.commit.actor == "somebody"
    assert not file_jobs.spool_of(known).exists()


class _Names:
    """Each caller is who the header says."""

    def caller_of(self, header: str | None) -> Caller:
        actor, _, role = (header or "").partition(":")
        return Caller(actor, roles=frozenset({role}))


def test_a_job_is_its_callers_own_and_who_maintains_sees_all(place: Path) -> None:
    graphs, limits = Graphs({"people": str(place / "people")}), ServerLimits(load_job_bytes=10)
    service = Service(graphs, limits, credentials=_Names(), guarded=True, policy=Roles())
    with serving(service) as site:
        load = "/graphs/people/load"
        kind = {"content_type": "application/jsonl"}
        reader = site.ask("POST", load, rows(1), authorization="rea:reader", **kind)
        assert reader.code == "denied"
        begun = site.ask("POST", load, rows(1), authorization="ada:writer", **kind)
        assert begun.status == 202
        known = begun.json["id"]
        assert site.get(f"{PATH}/{known}", authorization="ada:writer").status == 200
        assert site.get(f"{PATH}/{known}", authorization="bob:writer").code == "job_not_found"
        assert (
            site.get(f"{PATH}/{known}/events", authorization="bob:writer").code == "job_not_found"
        )
        gone = site.ask("DELETE", f"{PATH}/{known}", authorization="bob:writer")
        assert gone.code == "job_not_found"
        assert site.get(PATH, authorization="bob:writer").json["items"] == []
        assert len(site.get(PATH, authorization="max:maintainer").json["items"]) == 1
        for kind_of in ("verify", "optimize", "cleanup"):
            asked = site.post(PATH, {"kind": kind_of}, authorization="ada:writer")
            assert asked.code == "denied", kind_of
