"""Owns settings that Spark finds by itself: in its defaults file, and in arguments from the
environment.

What a program sets replaces them, so code that adds to a setting must read it first.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

_LINE = re.compile(r"\s*([^\s#!=:]+)\s*[=:\s]\s*(.*?)\s*$")
_OWN_OPTIONS = {
    "--jars": "spark.jars",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}


def found_setting(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The setting, or "". Arguments override the file."""
    return _of_arguments(environment).get(name) or _of_file(environment).get(name) or ""


def _of_arguments(environment: Mapping[str, str]) -> dict[str, str]:
    try:
        words = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    except ValueError:  # Spark reports errors in them
        return {}
    found: dict[str, str] = {}
    for word, value in pairwise([*words, ""]):
        option, joined, rest = word.partition("=")
        given = rest if joined else value
        if option in ("--conf", "-c"):
            name, _, text = given.partition("=")
            found[name] = text
        elif option in _OWN_OPTIONS:
            found[_OWN_OPTIONS[option]] = given
    return found


def _of_file(environment: Mapping[str, str]) -> dict[str, str]:
    path = _directory(environment) / "spark-defaults.conf"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {match[1]: match[2] for match in map(_LINE.match, lines) if match}


def _directory(environment: Mapping[str, str]) -> Path:
    if given := environment.get("SPARK_CONF_DIR"):
        return Path(given)
    if home := environment.get("SPARK_HOME"):
        return Path(home) / "conf"
    spec = find_spec("pyspark")
    return Path(spec.origin).parent / "conf" if spec and spec.origin else Path("conf")
