"""Patterns mean the same on every Python 3.11."""

from __future__ import annotations

import re
from pathlib import Path

import omnigraph

SOURCE = Path(omnigraph.__file__).parent
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def test_no_group_is_repeated_possessively() -> None:
    """`(?:a|b)*+` matches wrongly before 3.11.5, and Debian 12 has 3.11.2; `[ab]*+` is right."""
    assert POSSESSIVE_GROUP.search(r"(?:[^*]|\*(?!/))*+")
    assert not POSSESSIVE_GROUP.search(r"[^*]*+(?:\.\w++)*")
    paths = [*SOURCE.glob("lang/**/*.py"), *SOURCE.glob("lang/**/*.lark")]
    found = [path.name for path in paths if POSSESSIVE_GROUP.search(path.read_text("utf-8"))]
    assert (len(paths) > 20, found) == (True, ["tokens.py"])  # which says so in a comment
