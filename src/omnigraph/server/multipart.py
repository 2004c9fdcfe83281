"""Owns bodies of several parts: each by its name, as bytes."""

from __future__ import annotations

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from omnigraph.errors import InvalidArgument

_MOST = 256


class _Parts:
    """What the parser calls back."""

    def __init__(self) -> None:
        self.found: dict[str, bytes] = {}
        self._field = b""
        self._value = b""
        self._name: str | None = None
        self._data: list[bytes] = []

    def on_part_begin(self) -> None:
        self._name, self._data = None, []

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self._name = options.get(b"name", b"").decode("utf-8", "replace")
        self._field = self._value = b""

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def on_part_end(self) -> None:
        if not self._name:
            raise InvalidArgument("A part of the body has no name.")
        if self._name in self.found:
            raise InvalidArgument(f"The body has the part {self._name[:60]!r} twice.")
        if len(self.found) >= _MOST:
            raise InvalidArgument(f"The body has more than {_MOST} parts.")
        self.found[self._name] = b"".join(self._data)


def read_parts(body: bytes, content_type: str) -> dict[str, bytes]:
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise InvalidArgument("The content type of a body of parts names their boundary.")
    parts = _Parts()
    names = [name for name in dir(parts) if name.startswith("on_")]
    parser = MultipartParser(boundary, {name: getattr(parts, name) for name in names})  # type: ignore[arg-type]
    try:
        parser.write(body)
        parser.finalize()
    except MultipartParseError as error:
        raise InvalidArgument(f"The parts of the body cannot be told apart: {error}.") from None
    return parts.found
