"""Owns the files of the web page: which there are, and how each is sent. They hold nothing of any
graph, so anybody may have them; what the page shows, it asks for like any other client."""

from __future__ import annotations

import gzip
import hashlib
import re
import stat
from dataclasses import dataclass
from pathlib import Path

import omnigraph

ROOT = Path(omnigraph.__file__).parent / "web"
INDEX = "index.html"
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*(?:/[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)*")
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
_PACKED = frozenset({".html", ".js", ".css", ".json", ".txt", ".svg"})
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""A page of this server runs what this server sends, asks nobody else, and is in no frame."""


@dataclass(frozen=True)
class PageFile:
    """`packed` is the body in gzip, where that is shorter."""

    body: bytes
    packed: bytes | None
    kind: str
    etag: str
    held: tuple[int, int]


class Page:
    """The files below one directory, read again when they have changed."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._files: dict[str, PageFile] = {}

    def find(self, name: str) -> PageFile | None:
        """None if there is no such file, or none of a kind that a page is made of."""
        path = self._root / name
        if _NAME.fullmatch(name) is None or path.suffix not in _KINDS:
            return None
        try:
            told = path.lstat()
        except OSError:
            return None
        if not stat.S_ISREG(told.st_mode):
            return None
        held = self._files.get(name)
        if held is None or held.held != (told.st_mtime_ns, told.st_size):
            held = self._files[name] = _read(path, (told.st_mtime_ns, told.st_size))
        return held


def _read(path: Path, held: tuple[int, int]) -> PageFile:
    body = path.read_bytes()
    packed = gzip.compress(body, 9, mtime=0) if path.suffix in _PACKED else None
    if packed is not None and len(packed) >= len(body):
        packed = None
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return PageFile(body, packed, _KINDS[path.suffix], etag, held)
