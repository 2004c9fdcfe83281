"""Owns reading TOML, which users write by hand: a table, or one error that says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnigraph.errors import InvalidArgument


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """`what` begins the sentence of the error."""
    import tomllib  # which a command without any TOML need not load

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InvalidArgument(f"{what} cannot be read: it nests too deep.") from None
    except ValueError as error:
        raise InvalidArgument(f"{what} cannot be read: {error}.") from None


def read_toml(path: Path, what: str) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # also of UTF-8, and of a zero byte in the name
        raise InvalidArgument(f"{what} cannot be read: {error}.") from None
    return parse_toml(text, what)
