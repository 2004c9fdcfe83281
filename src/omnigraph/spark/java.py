"""Owns finding a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from omnigraph.errors import EngineMissing

NEEDED = 17
_HELP = (
    "Debian, Ubuntu: apt install openjdk-17-jre-headless. Fedora: dnf install "
    "java-17-openjdk-headless. macOS: brew install openjdk@17. Or set JAVA_HOME to one that you "
    "have, or use engine='local', which needs no Java."
)


def find_java(environment: Mapping[str, str] | None = None) -> Path:
    """The home of the first Java that is new enough: the one that JAVA_HOME names, which must then
    be suitable, the one on the PATH, or one in the usual places."""
    environment = os.environ if environment is None else environment
    if home := environment.get("JAVA_HOME"):
        version = _version_of(Path(home))
        if version is None:
            raise EngineMissing(f"JAVA_HOME is {home}, but there is no Java in it.", help=_HELP)
        if version < NEEDED:
            raise EngineMissing(
                f"Spark needs Java {NEEDED} or newer, and JAVA_HOME, {home}, is Java {version}.",
                help=_HELP,
            )
        return Path(home)
    seen: dict[str, int] = {}
    for place in _places(environment):
        version = _version_of(place)
        if version is not None and version >= NEEDED:
            return place
        if version is not None:
            seen[str(place)] = version
    older = ", ".join(f"{place} (Java {version})" for place, version in seen.items())
    found = f"only older ones were found: {older}" if older else "none was found"
    raise EngineMissing(f"Spark needs Java {NEEDED} or newer, and {found}.", help=_HELP)


def _places(environment: Mapping[str, str]) -> Iterator[Path]:
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    parents = [
        Path("/usr/lib/jvm"),
        Path("/Library/Java/JavaVirtualMachines"),
        Path(environment.get("HOME", "/nonexistent")) / ".sdkman/candidates/java",
    ]
    for parent in parents:
        if parent.is_dir():
            for home in sorted(parent.iterdir()):
                bundled = home / "Contents/Home"
                yield bundled if bundled.is_dir() else home


def _version_of(home: Path) -> int | None:
    program = home / "bin" / "java"
    if not program.is_file():
        return None
    try:
        # Read by files and not by asking where that is possible: a JVM takes a while to start.
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    found = re.search(r'JAVA_VERSION="(\d+)(?:\.(\d+))?', release)
    if found is None:
        try:
            told = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = re.search(r'version "(\d+)(?:\.(\d+))?', told.stderr)
    if found is None:
        return None
    first, second = int(found[1]), int(found[2] or 0)
    return second if first == 1 else first  # 1.8 is Java 8
