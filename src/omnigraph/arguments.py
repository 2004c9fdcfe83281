"""Owns the check of the arguments that Python callers pass, against the annotations of the
function.

Callers may not run a type checker, and an error raised deep inside does not name the wrong
argument. This module checks only the type of an argument. The function that uses the argument
checks its meaning: which names exist, which numbers make sense.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import inspect
import itertools
import math
import os
import textwrap
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from omnigraph.errors import InvalidArgument

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
_LARGEST = 2**63 - 1
_Check = Callable[[Any], bool]


def checked_methods(of: C) -> C:
    """A class whose public methods check the types of their arguments first."""
    for name, member in list(vars(of).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(of, name, checked(member))
    return of


def checked(function: F) -> F:
    """A function that checks the types of its arguments first."""

    @functools.cache
    def names() -> tuple[str, ...]:
        return tuple(inspect.signature(function).parameters)

    @functools.cache
    def known(name: str) -> tuple[_Check, str] | None:
        hint = _hint_of(inspect.unwrap(function), name)
        return None if hint is None or not _expected(hint) else (_check(hint), _expected(hint))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names(), args, strict=False)) | kwargs
        for name, value in given.items():
            if (wanted := known(name)) is not None and not wanted[0](value):
                raise InvalidArgument(
                    f"{name} of {function.__name__}() is {wanted[1]}, not {_shown(value)}."
                )
        return function(*args, **kwargs)

    return typing.cast(F, call)


def _hint_of(function: Callable[..., Any], name: str) -> Any:
    """What the annotation of a parameter says; None where it has none. It is read when the argument
    is given for the first time: what it names may not be imported before."""
    words = None
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_KEYWORD:
            words = one.name
        elif one.name == name and one.kind is not one.VAR_POSITIONAL:
            return _evaluated(function, name)
    held = None if words is None else _evaluated(function, words)
    if get_origin(held) is not typing.Unpack:
        return None
    return typing.get_type_hints(get_args(held)[0]).get(name)


def _evaluated(function: Callable[..., Any], name: str) -> Any:
    written = function.__annotations__.get(name)
    if not isinstance(written, str):
        return written
    try:
        return eval(written, {}, _Names(function.__globals__))
    except (AttributeError, TypeError):  # a part of a name that is not there
        return None


class _Names(dict[str, Any]):
    """The names that annotations use, those among them that a module imports for type checkers.
    What cannot be found accepts anything."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known

    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):  # code that inspects frames asks for it
            raise KeyError(name)
        if name in self._known:
            return self._known[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        place = _imported_for_checkers(str(self._known.get("__file__", ""))).get(name)
        return _Unknown if place is None else getattr(importlib.import_module(place), name)


@functools.cache
def _imported_for_checkers(file: str) -> Mapping[str, str]:
    """The module of each name that is imported where only type checkers look. Whoever gives such
    an argument calls what imports it anyway."""
    try:
        source = Path(file).read_text(encoding="utf-8")
    except OSError:  # there are only compiled files
        return {}
    lines = source.partition("\nif TYPE_CHECKING:\n")[2].splitlines()
    block = itertools.takewhile(lambda line: not line or line.startswith(" "), lines)
    found = ast.parse(textwrap.dedent("\n".join(block))).body
    imports = [one for one in found if isinstance(one, ast.ImportFrom) and one.module]
    return {name.asname or name.name: str(one.module) for one in imports for name in one.names}


class _OfUnknown(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class _Unknown(metaclass=_OfUnknown):
    """Stands for a name that is imported only for type checkers, and for what is in it. Every
    value fits it."""

    def __class_getitem__(cls, _of: object) -> type:
        return cls


def check_fields(held: Any, hints: Mapping[str, Any]) -> None:
    """The same check for the fields of a value."""
    for name, hint in hints.items():
        value = getattr(held, name)
        if not _check(hint)(value):
            told = f"{name} of {type(held).__name__} is {_expected(hint)}, not {_shown(value)}."
            raise InvalidArgument(told)


def _shown(value: object) -> str:
    try:
        text = ascii(value)
    except Exception:  # noqa: BLE001  what it says of itself is its own affair
        text = ""
    return text if 0 < len(text) <= 60 else _with_article(type(value).__name__)


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_whole(value: object) -> bool:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return False
    return -_LARGEST <= int(value) <= _LARGEST


def _is_number(value: object) -> bool:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        return False
    try:
        return not math.isnan(float(value))
    except (ArithmeticError, TypeError, ValueError):
        return False


def _are_texts(value: object) -> bool:
    """A single text is not a collection of texts, and bytes are not a collection of numbers."""
    if isinstance(value, str | bytes | bytearray | memoryview):
        return False
    return isinstance(value, Collection) and all(map(_is_text, value))


_KINDS: dict[Any, tuple[_Check, str]] = {
    str: (_is_text, "a text"),
    int: (_is_whole, "a whole number"),
    float: (_is_number, "a number"),
    bool: (lambda value: isinstance(value, bool), "True or False"),
    types.NoneType: (lambda value: value is None, "None"),
    os.PathLike: (lambda value: hasattr(value, "__fspath__"), "a path"),
    Mapping: (lambda value: isinstance(value, Mapping), "a mapping"),
    Callable: (callable, "a function"),
}


def _check(hint: Any) -> _Check:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        parts = [_check(part) for part in get_args(hint)]
        return lambda value: any(part(value) for part in parts)
    if origin is Literal:
        return _is_text
    if origin is Sequence or hint is Sequence:
        return _are_texts if get_args(hint)[:1] == (str,) else _is_iterable
    kind = origin or hint
    if kind in _KINDS:
        return _KINDS[kind][0]
    if _is_plain_class(kind):
        return lambda value: isinstance(value, kind)
    return lambda _: True


def _is_iterable(value: object) -> bool:
    return isinstance(value, Iterable)


def _expected(hint: Any) -> str:
    """The accepted types in words; empty where anything is accepted."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        parts = [_expected(part) for part in get_args(hint)]
        if not all(parts):
            return ""
        *first, last = dict.fromkeys(parts)
        return f"{', '.join(first)} or {last}" if first else last
    if origin is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    if origin is Sequence:
        return "a list of texts" if get_args(hint)[:1] == (str,) else "a list"
    kind = origin or hint
    if kind in _KINDS:
        return _KINDS[kind][1]
    return _with_article(kind.__name__) if _is_plain_class(kind) else ""


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"


def _is_plain_class(kind: Any) -> bool:
    """A protocol is not one: it cannot be checked at run time."""
    if kind is Any or kind is _Unknown:
        return False
    return isinstance(kind, type) and not getattr(kind, "_is_protocol", False)
