"""Owns the configuration of the server: flags, then OMNIGRAPH_SERVER_*, then omnigraph.toml. A name
that means nothing refuses the start."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near
from omnigraph.policy.oidc import Issuer
from omnigraph.server.graphs import NAME
from omnigraph.server.limits import ServerLimits
from omnigraph.server.logs import LogConfig
from omnigraph.toml import read_toml

PREFIX = "OMNIGRAPH_SERVER_"
_TEXTS = ("prefix", "tokens", "anonymous", "groups")
"""Texts that may be missing."""
_TOP = (
    "bind",
    "workers",
    "behind_proxy",
    "trusted_proxies",
    "cors",
    "sources",
    "web",
    "mcp",
    "mcp_merge",
)


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """`graphs` are roots by name; every graph below `prefix` is served, too. `web` is whether there
    is a page for browsers."""

    bind: str = "127.0.0.1:8470"
    workers: int = 1
    tls: tuple[str, str] | None = None
    behind_proxy: bool = False
    trusted_proxies: tuple[str, ...] = ()
    cors: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    graphs: Mapping[str, str] = field(default_factory=dict)
    prefix: str | None = None
    create: bool = False
    web: bool = True
    limits: ServerLimits = field(default_factory=ServerLimits)
    log: LogConfig = field(default_factory=LogConfig)
    tokens: str | None = None
    anonymous: str | None = None
    issuer: Issuer | None = None
    policies: tuple[str, ...] = ()
    groups: str | None = None
    mcp: bool = True
    mcp_merge: bool = False
    file: str | None = None
    """Where it was read from."""

    @property
    def guarded(self) -> bool:
        """Whether requests say who they are from."""
        return self.tokens is not None or self.issuer is not None

    @property
    def address(self) -> tuple[str, int]:
        host, colon, port = self.bind.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise InvalidArgument(f"bind is HOST:PORT, not {self.bind!r}.")
        return host.strip("[]"), int(port)

    @property
    def loopback(self) -> bool:
        host, _ = self.address
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False


def read_config(
    path: Path | None,
    environment: Mapping[str, str],
    roots: Sequence[str],
    *,
    bind: str | None = None,
    workers: int | None = None,
) -> ServerConfig:
    config = ServerConfig() if path is None else replace(_from_file(path), file=str(path))
    config = _from_environment(config, environment)
    named = dict(config.graphs)
    for root in roots:
        name, place = _named(root)
        named[name] = place
    config = replace(config, graphs=named)
    if bind is not None:
        config = replace(config, bind=bind)
    if workers is not None:
        config = replace(config, workers=workers)
    _check(config)
    return replace(config, anonymous=None) if config.anonymous == "none" else config


def _named(given: str) -> tuple[str, str]:
    """`name=root`, or a root, whose last part is its name."""
    name, equals, root = given.partition("=")
    if equals and "/" not in name:
        return name, root
    last = given.rstrip("/").rsplit("/", 1)[-1].removesuffix(".graph").lower()
    if NAME.fullmatch(last) is None:
        raise InvalidArgument(
            f"{last!r} cannot be the name of a graph in an address.", help=f"Say NAME={given}."
        )
    return last, given


def _from_file(path: Path) -> ServerConfig:
    given = read_toml(path, str(path)).get("server", {})
    if not isinstance(given, dict):
        raise InvalidArgument(f"server in {path} is not a table.")
    return _from_table(given, f"{path} [server]")


def _from_table(given: dict[str, Any], where: str) -> ServerConfig:
    words = dict(given)
    made: dict[str, Any] = {}
    if (tls := words.pop("tls", None)) is not None:
        _only(tls, ("cert", "key"), f"{where}.tls")
        made["tls"] = (_needed(tls, "cert", f"{where}.tls"), _needed(tls, "key", f"{where}.tls"))
    if (prefix := words.pop("prefix", None)) is not None:
        _only(prefix, ("root", "create"), f"{where}.prefix")
        made["prefix"] = _needed(prefix, "root", f"{where}.prefix")
        made["create"] = _value(False, prefix.get("create", False), f"{where}.prefix.create")
    made |= _auth(words.pop("auth", {}), f"{where}.auth")
    if (policy := words.pop("policy", None)) is not None:
        _only(policy, ("files", "groups"), f"{where}.policy")
        made["policies"] = _value((), policy.get("files", ()), f"{where}.policy.files")
        made["groups"] = _perhaps(policy, "groups", f"{where}.policy")
        if not made["policies"]:  # else the roles would hold, and nobody would know
            raise InvalidArgument(f"{where}.policy names no files.")
    graphs = words.pop("graphs", {})
    if not isinstance(graphs, dict):
        raise InvalidArgument(f"{where}.graphs is not a table.")
    made["graphs"] = {name: _needed(graphs, name, f"{where}.graphs") for name in graphs}
    for name, kind in (("limits", ServerLimits), ("log", LogConfig)):
        held = words.pop(name, {})
        made[name] = replace(kind(), **_typed(kind(), held, f"{where}.{name}"))
    _only(words, (*_TOP, "tls", "prefix", "graphs", "auth", "policy", "limits", "log"), where)
    return replace(ServerConfig(), **made, **_typed(ServerConfig(), words, where))


def _auth(given: Any, where: str) -> dict[str, Any]:
    _only(given, ("tokens", "anonymous", "oidc"), where)
    made: dict[str, Any] = {name: _perhaps(given, name, where) for name in ("tokens", "anonymous")}
    if (oidc := given.get("oidc")) is not None:
        made["issuer"] = _issuer(oidc, f"{where}.oidc")
    return made


def _issuer(given: Any, where: str) -> Issuer:
    _only(given, tuple(one.name for one in fields(Issuer)), where)
    claims = given.get("claims", {})
    if not isinstance(claims, dict):
        raise InvalidArgument(f"{where}.claims is not a table.")
    return Issuer(
        _needed(given, "issuer", where),
        _needed(given, "audience", where),
        _perhaps(given, "jwks", where),
        {name: _needed(claims, name, f"{where}.claims") for name in claims},
    )


def _needed(given: dict[str, Any], name: str, where: str) -> str:
    if name not in given:
        raise InvalidArgument(f"{where} does not say its {name}.")
    return _text(given[name], f"{where}.{name}")


def _perhaps(given: dict[str, Any], name: str, where: str) -> str | None:
    return _needed(given, name, where) if name in given else None


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidArgument(f"{where} is a text, not {value!r}.")
    return value


def _only(given: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(given, dict):
        raise InvalidArgument(f"{where} is not a table.")
    for name in given:
        if name not in known:
            guess = near(name, known)
            raise InvalidArgument(
                f"{where} sets {name!r}, which means nothing.",
                help=f"Did you mean {guess!r}?" if guess else f"There are {', '.join(known)}.",
            )


def _typed(usual: Any, given: Any, where: str) -> dict[str, Any]:
    """Values of the kinds that the usual ones have."""
    known = [one.name for one in fields(usual) if _is_plain(getattr(usual, one.name))]
    _only(given, known, where)
    return {
        name: _value(getattr(usual, name), value, f"{where}.{name}")
        for name, value in given.items()
    }


def _is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str) or value == ()


def _value(usual: Any, value: Any, where: str) -> Any:
    if isinstance(usual, tuple) and isinstance(value, list | tuple):
        return tuple(_text(one, f"Each of {where}") for one in value)
    if isinstance(usual, float) and isinstance(value, int) and not isinstance(value, bool):
        return value  # which a float may be too small for
    if type(value) is not type(usual):
        told = "list" if usual == () else type(usual).__name__
        raise InvalidArgument(f"{where} is a {told}, not {value!r}.")
    return value


def _from_environment(config: ServerConfig, environment: Mapping[str, str]) -> ServerConfig:
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        for part in ("limits", "log"):
            if name.startswith(f"{part}_"):
                held = getattr(config, part)
                read = _read(held, name.removeprefix(f"{part}_"), text, variable)
                config = replace(config, **{part: replace(held, **read)})
                break
        else:
            config = replace(config, **_read(config, name, text, variable))
    return config


def _read(held: Any, name: str, text: str, variable: str) -> dict[str, Any]:
    known: dict[str, Any] = {one.name: getattr(held, one.name) for one in fields(held)}
    usual: Any = known.get(name)
    if name not in known or not (_is_plain(usual) or name in _TEXTS):
        raise InvalidArgument(f"{variable} means nothing.")
    if name in _TEXTS:
        return {name: _text(text, variable)}
    try:
        if isinstance(usual, bool):
            return {name: {"1": True, "true": True, "0": False, "false": False}[text.lower()]}
        if isinstance(usual, tuple):
            return {name: tuple(_text(one, variable) for one in text.split(","))}
        return {name: type(usual)(text)}
    except (KeyError, ValueError):
        raise InvalidArgument(f"{variable}={text!r} is not a {type(usual).__name__}.") from None


def _check(config: ServerConfig) -> None:
    _ = config.address
    if config.anonymous not in (None, "none", "reader"):
        raise InvalidArgument(f"anonymous is none or reader, not {config.anonymous!r}.")
    if not 1 <= config.workers <= 64:
        raise InvalidArgument(f"There are 1 to 64 workers, not {config.workers}.")
    for name in config.graphs:
        if NAME.fullmatch(name) is None:
            raise InvalidArgument(f"{name!r} cannot be the name of a graph in an address.")
    _check_roots(config.graphs)
    if not config.graphs and config.prefix is None:
        raise InvalidArgument(
            "There is no graph to serve.",
            help="Say omnigraph serve ROOT, or write [server.graphs] in omnigraph.toml.",
        )
    _check_reach(config)


def _check_roots(graphs: Mapping[str, str]) -> None:
    places: dict[str, str] = {}
    for name, root in graphs.items():
        place = root if "://" in root else str(Path(_text(root, f"The root of {name}")).resolve())
        if place in places:
            raise InvalidArgument(f"The graphs {places[place]} and {name} have one root, {root}.")
        places[place] = name


def _check_reach(config: ServerConfig) -> None:
    """What can be reached from other machines is guarded."""
    if not config.loopback and not config.guarded:
        raise InvalidArgument(
            f"{config.bind} can be reached from other machines, and nobody would have to say who "
            "they are.",
            help="Bind to 127.0.0.1, or give it tokens: [server.auth].",
        )
    if not config.loopback and config.tls is None and not config.behind_proxy:
        raise InvalidArgument(
            f"{config.bind} can be reached from other machines, and tokens would go there in the "
            "clear.",
            help="Give it a certificate ([server.tls]), or say behind_proxy = true.",
        )
    if config.tls is not None:
        for path in config.tls:
            if not Path(path).is_file():
                raise InvalidArgument(f"The TLS file {path!r} is not there.")
