"""Spark as processes of its own: a Connect server, a standalone master with workers. Each ends with
the block that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.request import urlopen

import pyspark

from omnigraph.spark.java import find_java

HOME = Path(pyspark.__file__).parent
SOURCE = Path(__file__).resolve().parents[2] / "src"
START_WITHIN = 180.0


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "JAVA_HOME": str(find_java()),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **more,
    }


@contextlib.contextmanager
def running(
    command: list[str], log: Path, env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with all that it starts."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_WITHIN
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text()[-4000:]) from None
            time.sleep(0.1)


@contextlib.contextmanager
def connect_server(directory: Path, conf: Mapping[str, str]) -> Iterator[str]:
    """Gives the address, `sc://…`."""
    port = free_port()
    told = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        **conf,
    }
    options = [word for name, value in told.items() for word in ("--conf", f"{name}={value}")]
    script = str(HOME / "sbin" / "start-connect-server.sh")
    env = environment(
        SPARK_NO_DAEMONIZE="1",
        SPARK_LOG_DIR=str(directory),
        SPARK_PID_DIR=str(directory),
        # A function for foreachBatch runs on the server, as a client of it.
        PYTHONPATH=os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]),
    )
    log = directory / "connect.log"
    with running(["bash", script, "--master", "local[2,3]", *options], log, env) as process:
        wait_for_port(port, process, log)
        yield f"sc://127.0.0.1:{port}"


@contextlib.contextmanager
def standalone(directory: Path, *, workers: int = 2) -> Iterator[str]:
    """A master and workers, whose environment knows nothing of this checkout or of any graph. Gives
    the address, `spark://…`."""
    port, page = free_port(), free_port()
    env = environment(SPARK_WORKER_DIR=str(directory / "work"), SPARK_DAEMON_MEMORY="256m")
    for name in ("PYTHONPATH", *(name for name in os.environ if name.startswith("AWS_"))):
        env.pop(name, None)
    start = ["bash", str(HOME / "bin" / "spark-class")]
    master = "org.apache.spark.deploy.master.Master"
    worker = "org.apache.spark.deploy.worker.Worker"
    place = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
    address = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        log = directory / "master.log"
        process = stack.enter_context(running([*start, master, *place], log, env))
        wait_for_port(page, process, log)
        for number in range(workers):
            size = ["--cores", "1", "--memory", "1g", "--webui-port", str(free_port())]
            command = [*start, worker, "--host", "127.0.0.1", *size, address]
            stack.enter_context(running(command, directory / f"worker{number}.log", env))
        _wait_for_workers(page, workers)
        yield address


def _wait_for_workers(page: int, count: int) -> None:
    deadline = time.monotonic() + START_WITHIN
    while True:
        # The page is served before there is anything on it.
        with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{page}/json/") as answer:
            if answer.read().decode().count('"ALIVE"') > count:  # the master says so of itself too
                return
        assert time.monotonic() < deadline
        time.sleep(0.2)
