"""Owns the addresses of graphs behind servers: which texts are one, and what they must not hold."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from omnigraph.errors import InvalidRoot

_GRAPH = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
ALLOW_HTTP = "OMNIGRAPH_ALLOW_HTTP"
_SHAPE = "Write https://host/graphs/NAME."


@dataclass(frozen=True)
class Address:
    """`origin` is scheme, host and port; `path` is that of the graph on it, if a graph is meant."""

    origin: str
    path: str
    graph: str

    @property
    def uri(self) -> str:
        return self.origin + self.path

    @property
    def is_loopback(self) -> bool:
        return (urlsplit(self.origin).hostname or "") in _LOOPBACK


def is_address(root: str | os.PathLike[str]) -> bool:
    """Whether a root is on a server, and not storage."""
    text = os.fspath(root)
    return text.split("://", 1)[0].lower() in ("http", "https") and "://" in text


def read_address(text: str, *, allow_http: bool = False) -> Address:
    """The address of a graph: `https://host[:port][/prefix]/graphs/name`."""
    origin, path = _split(text, allow_http)
    before, _, name = path.rpartition("/graphs/")
    if not path.startswith("/graphs/") and not before:
        raise InvalidRoot(f"{origin}{path} names no graph.", help=_SHAPE)
    if _GRAPH.fullmatch(name) is None:
        raise InvalidRoot(f"{name[:80]!r} is no name of a graph on a server.", help=_SHAPE)
    return Address(origin, f"{before}/graphs/{name}", name)


def read_origin(text: str, *, allow_http: bool = False) -> str:
    """The server of an address, whether or not it names a graph."""
    return _split(text, allow_http)[0]


def read_server(text: str, *, allow_http: bool = False) -> Address:
    """A server, by its own address or by that of a graph on it."""
    origin, path = _split(text, allow_http)
    before, _, _ = path.rpartition("/graphs/")
    return Address(origin, before if "/graphs/" in path else path, "")


def _split(text: str, allow_http: bool) -> tuple[str, str]:
    shown = re.split(r"[?#]", text, maxsplit=1)[0]
    if "@" in shown.split("://", 1)[-1].split("/", 1)[0]:
        raise InvalidRoot(
            "The address of a server holds no user and no password.",
            help="Give the token by token=, OMNIGRAPH_TOKEN or `omnigraph login`.",
        )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidRoot(f"{shown!r} is no address.", help=_SHAPE) from None
    host = parts.hostname or ""
    if not host or not text.isprintable() or not text.isascii() or " " in text or "\\" in text:
        raise InvalidRoot(f"{shown!r} is no address.", help=_SHAPE)
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise InvalidRoot(f"{shown} goes on with ? or #.", help=_SHAPE)
    scheme = parts.scheme.lower()
    if scheme == "http" and host not in _LOOPBACK and not allow_http:
        raise InvalidRoot(
            f"{shown} is plain http: everybody on the way could read the token and the data.",
            help=f"Use https://, or set {ALLOW_HTTP}=1 if that is what you want.",
        )
    usual = {"http": 80, "https": 443}[scheme]
    named = f"[{host}]" if ":" in host else host
    origin = f"{scheme}://{named}" + ("" if port in (None, usual) else f":{port}")
    return origin, parts.path.rstrip("/")
