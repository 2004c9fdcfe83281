"""A real S3 server (SeaweedFS) of a test run: started once, shared by all, never left behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "bench"
ACCESS_KEY = "benchaccess"
SECRET_KEY = "benchsecretbenchsecret"
REGION = "us-east-1"
START_WITHIN = 60.0
GRPC = 10_000  # weed serves gRPC of each service at its port plus this

_keepers: list[subprocess.Popen[bytes]] = []  # held, because they outlive the call that starts them


class ServerFailed(RuntimeError):
    """The S3 server did not come up; carries the end of its log."""


@dataclass(frozen=True)
class S3Server:
    """Where the server of this test run listens, and what a client needs to know."""

    endpoint: str
    bucket: str = BUCKET
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    region: str = REGION

    def env(self, *, endpoint: str | None = None) -> dict[str, str]:
        """The variables a process needs to use it, optionally through a proxy's endpoint."""
        return {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_S3_FORCE_PATH_STYLE": "true",
        }

    def url(self, prefix: str) -> str:
        return f"s3://{self.bucket}/{prefix}"

    def options(self, *, endpoint: str | None = None) -> dict[str, str]:
        """The same as options for obstore's S3Store and for Lance's ``storage_options``."""
        return {
            # Of all the names of an endpoint this one wins over any variable of the environment.
            "aws_endpoint_url_s3": endpoint or self.endpoint,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_region": self.region,
            "aws_virtual_hosted_style_request": "false",
            "allow_http": "true",
        }

    def store(self, prefix: str, *, endpoint: str | None = None) -> S3Store:
        """A bare client below a prefix that tries each request once: what fails is seen."""
        return S3Store(
            self.bucket,
            prefix=prefix,
            config=self.options(endpoint=endpoint),
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )


def shared_server(directory: Path, *, owner: int) -> S3Server:
    """The server of the run that uses ``directory``; the first caller starts it, others wait.

    A keeper process of its own holds the server and ends it when process ``owner`` ends, however
    that happens, so that a killed test run leaves nothing behind.
    """
    directory.mkdir(parents=True, exist_ok=True)
    state = directory / "server.json"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not state.exists():
            _start_keeper(directory, owner)
        return S3Server(**json.loads(state.read_text()))


def stop_server(directory: Path, *, within: float = 20.0) -> None:
    """End the server of this run, if there is one, and remove all that it stored."""
    state = directory / "server.json"
    if state.exists():
        (directory / "stop").touch()
        deadline = time.monotonic() + within
        while state.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
    shutil.rmtree(directory, ignore_errors=True)


def _start_keeper(directory: Path, owner: int) -> None:
    with (directory / "keeper.log").open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.s3", str(directory), str(owner)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _keepers.append(keeper)
    deadline = time.monotonic() + START_WITHIN
    while not (directory / "server.json").exists():
        if keeper.poll() is not None or time.monotonic() > deadline:
            keeper.kill()
            raise ServerFailed((directory / "keeper.log").read_text()[-4000:])
        time.sleep(0.02)


def keep(directory: Path, owner: int) -> None:
    """Run a server until it is asked to stop, the owner has gone or the directory was removed."""
    state = directory / "server.json"
    weed, server = _start_weed(directory)
    try:
        draft = directory / "server.json.part"
        draft.write_text(json.dumps(asdict(server)))
        draft.rename(state)
        while state.exists() and not (directory / "stop").exists() and _alive(owner):
            if weed.poll() is not None:
                raise ServerFailed(f"weed ended with {weed.returncode}")
            time.sleep(0.05)
    finally:
        weed.kill()  # nothing of it is kept, so it need not close its files
        weed.wait()
        state.unlink(missing_ok=True)
        shutil.rmtree(directory, ignore_errors=True)


def _start_weed(directory: Path) -> tuple[subprocess.Popen[bytes], S3Server]:
    """A server that has answered a conditional put; other ports if some were just taken."""
    for attempt in range(5):
        data = directory / f"data{attempt}"
        data.mkdir()
        ports = free_ports(4)
        with (directory / "weed.log").open("wb") as log:
            weed = subprocess.Popen(
                _command(data, ports),
                env={**os.environ, "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        server = S3Server(f"http://127.0.0.1:{ports[3]}")
        try:
            if _wait_until_ready(server, weed):
                return weed, server
        except BaseException:
            weed.kill()
            raise
        weed.kill()
        weed.wait()
    raise ServerFailed((directory / "weed.log").read_text()[-4000:])


def _command(data: Path, ports: list[int]) -> list[str]:
    weed = Path(sys.executable).with_name("weed")
    key = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    config = data / "s3.json"
    config.write_text(
        json.dumps({"identities": [{"name": "t", "credentials": [key], "actions": actions}]})
    )
    master, volume, filer, s3 = ports
    return [
        *(str(weed), "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-master.telemetry=false", "-volume.max=4000", "-master.volumeSizeLimitMB=256"),
        *("-s3", f"-s3.config={config}", "-s3.iam=false"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-master.port={master}", f"-master.port.grpc={master + GRPC}"),
        *(f"-volume.port={volume}", f"-volume.port.grpc={volume + GRPC}"),
        *(f"-filer.port={filer}", f"-filer.port.grpc={filer + GRPC}"),
        *(f"-s3.port={s3}", f"-s3.port.grpc={s3 + GRPC}"),
        *(f"-filer.localSocket={data}/filer.sock", f"-s3.localSocket={data}/s3.sock"),
    ]


def free_ports(count: int) -> list[int]:
    """Ports that are free now, as are those of their gRPC twins; held together while choosing."""
    chosen: list[int] = []
    with contextlib.ExitStack() as held:
        while len(chosen) < count:
            port = random.SystemRandom().randrange(12_000, 30_000)
            try:
                for number in (port, port + GRPC):
                    listener = held.enter_context(socket.socket())
                    listener.bind(("127.0.0.1", number))
            except OSError:
                continue
            chosen.append(port)
    return chosen


def _wait_until_ready(server: S3Server, weed: subprocess.Popen[bytes]) -> bool:
    """True once a conditional put wins the first time and loses the second; False if weed ended."""
    deadline = time.monotonic() + START_WITHIN
    while weed.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(BaseError, OSError):
            store = server.store(f"ready/{time.monotonic_ns()}")
            obstore.put(store, "first", b"1", mode="create")
            try:
                obstore.put(store, "first", b"2", mode="create")
            except AlreadyExistsError:
                return True
            raise ServerFailed("the S3 server does not honour If-None-Match")
        time.sleep(0.05)
    return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    keep(Path(sys.argv[1]), int(sys.argv[2]))
