"""Owns cutting a stream of bytes into chunks of whole lines, with a bound on the length of a
line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

_SHOWN = 200


@dataclass(frozen=True)
class LongLine:
    """A line that was too long to keep: its beginning and its length."""

    head: bytes
    size: int


def cut_lines(read: Callable[[int], bytes], size: int, longest: int) -> Iterator[bytes | LongLine]:
    """Chunks of about `size` bytes that end in a line break. A longer line makes a chunk of its
    own. A line longer than `longest`, which is at least `size`, is not kept."""
    pieces: list[bytes] = []
    held = 0
    while data := read(size):
        pieces.append(data)
        held += len(data)
        if held > longest and b"\n" not in data:
            pieces = [_head(pieces)]  # only the part that will be shown
            continue
        cut = data.rfind(b"\n") + 1
        if not cut:
            continue
        first = held - len(data) + data.find(b"\n")
        if first > longest:
            yield LongLine(_head(pieces), first)
            pieces = [data[data.find(b"\n") + 1 : cut]]
        else:
            pieces[-1] = data[:cut]
        if whole := b"".join(pieces):
            yield whole
        pieces, held = [data[cut:]], len(data) - cut
    if held > longest:
        yield LongLine(_head(pieces), held)
    elif held:
        yield b"".join((*pieces, b"\n"))


def _head(pieces: list[bytes]) -> bytes:
    return b"".join(piece[:_SHOWN] for piece in pieces)[:_SHOWN]
