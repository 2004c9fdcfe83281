"""Owns the check of the arguments that Python callers pass, against the annotations of the
function.

Callers may not run a type checker, and an error raised deep inside does not name the wrong
argument. This module checks only the type of an argument. The function that uses the argument
checks its meaning: which names exist, which numbers make sense.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    def checks() -> tuple[tuple[str, ...], dict[str, tuple[_Check, str]]]:
        signature = inspect.signature(function)
        hints: dict[str, Any] = {}
        held = _hints(function)
        for one in signature.parameters.values():
            if one.kind is one.VAR_KEYWORD and get_origin(held.get(one.name)) is typing.Unpack:
                hints |= typing.get_type_hints(get_args(held[one.name])[0])
            elif one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and one.name in held:
                hints[one.name] = held[one.name]
        found = {name: (_check(hint), _expected(hint)) for name, hint in hints.items()}
        return tuple(signature.parameters), {name: one for name, one in found.items() if one[1]}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        names, known = checks()
        given = dict(zip(names, args, strict=False)) | kwargs
        for name, value in given.items():
            if name in known and not known[name][0](value):
                raise InvalidArgument(
                    f"{name} of {function.__name__}() is {known[name][1]}, not {_shown(value)}."
                )
        return function(*args, **kwargs)

    return typing.cast(F, call)


class _Names(dict[str, Any]):
    """The names that annotations use. Some exist only for type checkers; these accept anything."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known

    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):  # code that inspects frames asks for it
            raise KeyError(name)
        return self._known.get(name, vars(builtins).get(name, _Unknown))


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


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, localns=_Names(function.__globals__))
    except (AttributeError, TypeError):  # a part of a name that is not there
        return {}


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
