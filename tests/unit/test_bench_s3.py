"""The S3 server of a run is real, shared, and gone afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from tests.bench import s3
from tests.bench.s3 import S3Server, free_ports, shared_server, stop_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.s3
def test_the_environment_alone_is_enough_for_a_client(
    s3_environment: S3Server, s3_prefix: str
) -> None:
    store = S3Store(s3_environment.bucket, prefix=s3_prefix)
    obstore.put(store, "k", b"v")
    assert bytes(obstore.get(store, "k").bytes()) == b"v"


@pytest.mark.s3
def test_asking_again_gives_the_same_server(s3_server: S3Server) -> None:
    directory = Path(os.environ["OMNIGRAPH_BENCH_DIRECTORY"])
    started = len(s3._keepers)
    assert shared_server(directory, owner=os.getpid()) == s3_server
    assert len(s3._keepers) == started


@pytest.mark.s3
def test_a_wrong_signature_is_refused(s3_server: S3Server) -> None:
    wrong = {**s3_server.options(), "aws_secret_access_key": "not this"}
    store = S3Store(s3_server.bucket, config=wrong, client_options={"allow_http": True})
    with pytest.raises(obstore.exceptions.PermissionDeniedError):
        obstore.get(store, "k")


@pytest.mark.s3
def test_a_second_server_runs_beside_the_first_and_ends_with_its_owner(
    s3_server: S3Server, tmp_path: Path
) -> None:
    directory = tmp_path / "second"
    start = (
        "import sys, os, pathlib; from tests.bench.s3 import shared_server; "
        "print(shared_server(pathlib.Path(sys.argv[1]), owner=os.getpid()).endpoint)"
    )
    owner = subprocess.run(
        [sys.executable, "-c", start, str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert owner.stdout.strip() != s3_server.endpoint
    deadline = time.monotonic() + 10
    while directory.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not directory.exists()


def test_stopping_a_server_that_never_started_only_removes_its_directory(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    stop_server(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_free_ports_are_distinct_and_leave_room_for_their_twins() -> None:
    ports = free_ports(8)
    assert len({*ports, *(port + 10_000 for port in ports)}) == 16
    assert max(ports) + 10_000 < 65_536
