"""Owns the forms of an answer that has rows: which there are, and which one a client asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.errors import NotAcceptable

JSON = "application/json"
LINES = "application/jsonl"
ARROW = "application/vnd.apache.arrow.stream"
EVENTS = "text/event-stream"
SUBSTRAIT = "application/vnd.substrait"
_SAME = {"application/x-ndjson": LINES, "application/ndjson": LINES, "application/x-jsonl": LINES}


class Shape(StrEnum):
    """How rows are written: a page, a line for each, or an Arrow stream."""

    JSON = JSON
    LINES = LINES
    ARROW = ARROW


@dataclass(frozen=True)
class Form:
    """`whole_as_text` writes integers of 64 bits as texts, which JavaScript can hold;
    `compression` is that of the buffers inside of an Arrow stream."""

    shape: Shape = Shape.JSON
    whole_as_text: bool = False
    compression: str | None = None

    @property
    def content_type(self) -> str:
        if self.shape is Shape.ARROW and self.compression:
            return f"{self.shape.value};compression={self.compression}"
        return self.shape.value + (";int64=string" if self.whole_as_text else "")


@dataclass(frozen=True)
class _Wanted:
    kind: str
    parameters: dict[str, str]
    quality: float
    place: int


def choose_form(
    accept: str | None, offered: Sequence[Shape] = (Shape.JSON, Shape.LINES, Shape.ARROW)
) -> Form:
    """The form that a client likes best of those that are offered; the first one if it does not
    care."""
    if not accept or accept == "*/*":
        return Form(offered[0])
    for wanted in _by_liking(accept):
        kind = _SAME.get(wanted.kind, wanted.kind)
        for shape in offered:
            if kind in (shape.value, "*/*", "application/*"):
                return Form(
                    shape,
                    wanted.parameters.get("int64") == "string" and shape is not Shape.ARROW,
                    _buffers(wanted) if shape is Shape.ARROW else None,
                )
    raise NotAcceptable(f"There is no answer in the form {accept!r} here.")


def accepts(accept: str | None, kind: str) -> bool:
    """Whether a client names this kind itself."""
    return accept is not None and any(one.kind == kind for one in _by_liking(accept))


def wants_typed(accept: str | None) -> bool:
    """Whether a client asks for values that carry their kind, as `typed` writes them."""
    return accept is not None and any(
        one.parameters.get("values") == "typed" for one in _by_liking(accept)
    )


def choose_coding(accept_encoding: str | None) -> str | None:
    """zstd, gzip or nothing."""
    if not accept_encoding:
        return None
    liked = {one.kind: one.quality for one in _read(accept_encoding)}
    return next((coding for coding in ("zstd", "gzip") if liked.get(coding, 0) > 0), None)


def _buffers(wanted: _Wanted) -> str | None:
    compression = wanted.parameters.get("compression")
    if compression not in (None, "none", "zstd", "lz4"):
        raise NotAcceptable(
            f"Arrow streams are compressed by zstd or lz4, not by {compression!r}.",
            help="Leave compression away, or write compression=zstd.",
        )
    return None if compression == "none" else compression


def _by_liking(header: str) -> list[_Wanted]:
    found = [one for one in _read(header) if one.quality > 0]
    return sorted(found, key=lambda one: (-one.quality, one.place))


def _read(header: str) -> Iterator[_Wanted]:
    for place, part in enumerate(header.split(",")):
        kind, *rest = (word.strip() for word in part.split(";"))
        parameters = {}
        for word in rest:
            name, _, value = word.partition("=")
            parameters[name.strip().lower()] = value.strip().strip('"').lower()
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 0.0
        yield _Wanted(kind.lower(), parameters, quality, place)
