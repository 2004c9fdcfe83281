"""Owns where the graph is: the option, else OMNIGRAPH_ROOT, else the nearest omnigraph.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near
from omnigraph.toml import read_toml

NAME = "omnigraph.toml"
_KEYS = ("root", "actor")


@dataclass(frozen=True)
class Config:
    root: str | None = None
    actor: str | None = None


def read_config(directory: Path, environment: Mapping[str, str]) -> Config:
    """Variables of the environment win over the file."""
    found = _read_file(directory)
    return Config(
        root=environment.get("OMNIGRAPH_ROOT") or found.root,
        actor=environment.get("OMNIGRAPH_ACTOR") or found.actor,
    )


def require_root(given: str | None, config: Config) -> str:
    root = config.root if given is None else given
    if root is None:
        raise InvalidArgument(
            "Which graph? No root was given.",
            help=f'Say --root ROOT, set OMNIGRAPH_ROOT, or write root = "..." in {NAME}.',
        )
    return root


def is_served(root: str) -> bool:
    """Whether the graph is behind a server. Known without the client, which few commands need."""
    return root.split("://", 1)[0].lower() in ("http", "https")


def _read_file(directory: Path) -> Config:
    for place in (directory, *directory.parents):
        path = place / NAME
        if path.is_file():
            return _parse(path)
    return Config()


def _parse(path: Path) -> Config:
    values = read_toml(path, str(path))
    values.pop("server", None)  # which is read by the server alone
    for key, value in values.items():
        if key not in _KEYS:
            guess = near(key, _KEYS)
            hint = f"Did you mean {guess!r}?" if guess else f"There are {', '.join(_KEYS)}."
            raise InvalidArgument(f"{path} sets {key!r}, which means nothing.", help=hint)
        if not isinstance(value, str) or not value:
            raise InvalidArgument(f"{key} in {path} is not a text.")
    root = values.get("root")
    if root is not None and "://" not in root:
        root = str(path.parent / Path(root).expanduser())
    return Config(root=root, actor=values.get("actor"))
