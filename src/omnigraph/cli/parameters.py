"""Owns the parameters of a query as they are typed: JSON, or a word that is taken as text."""

from __future__ import annotations

import json
import math
from typing import Any

from omnigraph.errors import InvalidArgument


def read_parameters(given: str | None, single: tuple[str, ...]) -> dict[str, Any]:
    """`--params` is a JSON object, `--param` is `name=value`; the latter wins."""
    values: dict[str, Any] = {}
    if given is not None:
        try:
            values = json.loads(given, parse_float=_float, parse_constant=_constant)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(
                f"--params is not JSON: {error}.", help='Write --params \'{"name": "Ada"}\'.'
            ) from None
        if not isinstance(values, dict):
            raise InvalidArgument("--params is not an object.", help='Write {"name": "Ada"}.')
    for pair in single:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InvalidArgument(
                f"--param {pair!r} is not name=value.", help="Write --param name=Ada."
            )
        values[name.lstrip("$")] = read_value(text)
    return values


def read_value(text: str) -> Any:
    """A word that reads as JSON is JSON; any other word is a text. To pass a text that looks like a
    number, quote it, or declare the parameter as String."""
    try:
        return json.loads(text, parse_float=_float)
    except (ValueError, RecursionError):
        return text


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is larger than any number that can be stored")
    return number


def _constant(text: str) -> float:
    """Python's JSON accepts numbers that are not JSON; these are refused in files too."""
    raise ValueError(f"JSON has no {text}; write --param name={text}")
