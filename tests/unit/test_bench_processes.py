"""Real processes: released together, killed for good, and never waited for without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bench.processes import Failed, Hung, Worker, results_of, run_together
from tests.bench.worker import pause, report

HERE = "tests.unit.test_bench_processes"
ROOT = Path(__file__).resolve().parents[2]


def add(left: int, right: int) -> dict[str, Any]:
    print("this goes to stderr and does not disturb the answer")
    return {"sum": left + right, "pid": os.getpid()}


def clock() -> float:
    return time.time()


def fail(word: str) -> None:
    raise LookupError(f"no {word}")


def sleep_for_ever() -> None:
    time.sleep(3600)


def write_in_steps(path: str) -> str:
    Path(path).write_text("before")
    report("begun")
    pause("half")
    Path(path).write_text("after")
    return "done"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def variable(name: str) -> str | None:
    return os.environ.get(name)


def test_each_process_gets_its_arguments_and_answers_in_order() -> None:
    outcomes = run_together(f"{HERE}:add", [{"left": n, "right": 1} for n in range(3)])
    results = results_of(outcomes)
    assert [result["sum"] for result in results] == [1, 2, 3]
    assert len({result["pid"] for result in results} | {os.getpid()}) == 4
    assert "this goes to stderr" in outcomes[0].stderr


def test_processes_start_together_although_they_import_at_their_own_pace() -> None:
    began = results_of(run_together(f"{HERE}:clock", [{}] * 4))
    assert max(began) - min(began) < 0.5


def test_an_exception_comes_back_with_its_traceback() -> None:
    (outcome,) = run_together(f"{HERE}:fail", [{"word": "luck"}])
    assert outcome.error == "builtins.LookupError"
    assert outcome.message == "no luck"
    with pytest.raises(Failed, match="no luck"):
        results_of([outcome])


def test_an_import_that_fails_is_an_error_and_not_a_hang() -> None:
    (outcome,) = run_together("tests.no_such_module:f", [{}])
    assert outcome.error == "builtins.ModuleNotFoundError"


def test_a_hang_becomes_a_failure_that_shows_where() -> None:
    with pytest.raises(Hung, match="in sleep_for_ever"):
        run_together(f"{HERE}:sleep_for_ever", [{}], within=0.5)


def test_a_process_is_killed_at_the_point_it_pauses_at(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with Worker(f"{HERE}:write_in_steps", {"path": str(path)}) as worker:
        worker.wait_ready()
        worker.go()
        worker.wait_for("half")
        worker.kill()
        outcome = worker.outcome()
    assert outcome.killed
    assert path.read_text() == "before"


def test_a_paused_process_goes_on_when_resumed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with Worker(f"{HERE}:write_in_steps", {"path": str(path)}) as worker:
        worker.wait_ready()
        worker.go()
        worker.wait_for("half")
        worker.resume()
        assert worker.outcome().result == "done"
    assert path.read_text() == "after"


def test_a_point_that_is_never_reached_is_a_failure() -> None:
    with Worker(f"{HERE}:add", {"left": 1, "right": 1}) as worker:
        worker.wait_ready()
        worker.go()
        with pytest.raises(Failed, match="ended before 'half'"):
            worker.wait_for("half", within=10)


def test_a_process_that_kills_itself_is_known_as_killed() -> None:
    (outcome,) = run_together(f"{HERE}:die", [{}])
    assert outcome.killed
    with pytest.raises(Failed, match="no answer, exit code -9"):
        results_of([outcome])


def test_the_environment_of_a_process_can_be_given() -> None:
    (outcome,) = run_together(f"{HERE}:variable", [{"name": "BENCH_X"}], env={"BENCH_X": "y"})
    assert outcome.result == "y"


def test_workers_end_when_their_parent_is_killed() -> None:
    script = (
        "import time\nfrom tests.bench.processes import Worker\n"
        f"worker = Worker('{HERE}:sleep_for_ever', {{}})\n"
        "worker.wait_ready(); worker.go(); print(worker.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
