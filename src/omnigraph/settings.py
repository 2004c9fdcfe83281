"""Owns the settings and their sources: arguments, then OMNIGRAPH_* variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_type_hints
from urllib.parse import urlsplit

from omnigraph.arguments import check_fields
from omnigraph.errors import InvalidArgument

_CHOICES = {
    "OMNIGRAPH_DURABILITY": ("full", "relaxed"),
    "OMNIGRAPH_FOLDING": ("inline", "background", "off"),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`durability`: "full" acknowledges a commit after every file and directory entry is
    synced; "relaxed" leaves out the last directory sync, so a power cut may lose the newest
    commits but never leaves a broken one. `grace`: seconds that an unreferenced file is safe
    from cleanup. `queue`: whether writers of one machine queue behind an advisory lock (the put
    decides either way). `group_commit`: whether threads that add to one branch at the same time
    have their commits made ready together; each is still a commit of its own. `lookup_rows`:
    the largest table whose keys are kept in memory. `query_rows`: how many rows a query groups
    or sorts in memory before duckdb does it, on disk. `cache_bytes`: bytes of rows and arrays
    that an open graph keeps between calls, all its caches together. `load_memory`: bytes that a
    load holds before it goes to temporary files. `spark_rows`: estimated rows above which a
    load runs on Spark, where that is installed. `folding`: whether small fragments are folded
    into larger ones "inline", by the write that made them too many, in the "background", by a
    thread of the open graph, or never ("off"). `embed_url`: where the models `openai:...` are,
    for example "http://localhost:11434/v1"; without it what OPENAI_BASE_URL says, or OpenAI's
    own. `embed_retry_for`: seconds that a batch of texts is tried again when the provider is
    down, busy or answers nonsense. `allow_http`: whether a server on another machine may be
    asked without TLS, where everybody on the way reads the token and the data. A key is no
    setting: it is in the environment alone.
    """

    durability: Literal["full", "relaxed"] = "full"
    grace: float = 3600.0
    retry_for: float = 30.0
    queue: bool = True
    group_commit: bool = True
    lookup_rows: int = 5_000_000
    query_rows: int = 4_000_000
    cache_bytes: int = 1024 * 1024 * 1024
    load_memory: int = 1024 * 1024 * 1024
    spark_rows: int = 1_000_000
    request_timeout: float = 30.0
    folding: Literal["inline", "background", "off"] = "inline"
    embed_url: str = ""
    embed_retry_for: float = 120.0
    allow_http: bool = False

    def __post_init__(self) -> None:
        check_fields(self, _FIELDS)
        if self.embed_url:
            check_address(self.embed_url)

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
        environment = os.environ if environment is None else environment
        given: dict[str, object] = {}
        for field in fields(Settings):
            name = f"OMNIGRAPH_{field.name.upper()}"
            if (text := environment.get(name)) is not None:
                given[field.name] = _read(name, str(field.type), text)
        return Settings(**given)  # type: ignore[arg-type]


_FIELDS = get_type_hints(Settings)


def check_address(address: str) -> None:
    """Settings are shown and travel to executors, so the address of a model holds no secret, nor
    a place where one could be."""
    if set("@?#").intersection(address):
        raise InvalidArgument(
            "The address of the embeddings has a user, a password, ? or # in it.",
            help="Give the address alone in OMNIGRAPH_EMBED_URL, the key in OMNIGRAPH_EMBED_KEY.",
        )
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or not address.isprintable() or " " in address:
        raise InvalidArgument(
            f"The address of the embeddings, {address!r}, is no http or https address.",
            help="Set OMNIGRAPH_EMBED_URL to one like http://localhost:11434/v1.",
        )


def _read(name: str, kind: str, text: str) -> object:
    try:
        if kind == "bool":
            return {"1": True, "true": True, "0": False, "false": False}[text.lower()]
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text)
    except (KeyError, ValueError):
        raise InvalidArgument(f"{name}={text!r} is not a {kind}.") from None
    if kind == "str":
        return text
    choices = _CHOICES[name]
    if text not in choices:
        raise InvalidArgument(f"{name}={text!r} is none of {', '.join(map(repr, choices))}.")
    return text
