"""What a process says on stderr that is started under the filter."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import subprocess, sys, time
from omnigraph.spark.stderr import filtered_stderr

with filtered_stderr():
    child = subprocess.Popen(["sh", "-c", sys.argv[1]])
print("mine", file=sys.stderr, flush=True)
child.wait()
time.sleep(0.5)
"""
SAYS = "echo 'WARNING: Using incubator modules: x' >&2; echo 'no space left' >&2"


def test_all_but_the_noise_is_handed_on() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, SAYS], capture_output=True, text=True, check=True
    )
    assert sorted(ran.stderr.splitlines()) == ["mine", "no space left"]
