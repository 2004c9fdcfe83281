"""Owns the command `top`: what happens on a graph now, looked at again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.colours import Paint
from omnigraph.cli.config import is_served
from omnigraph.cli.value_text import count_text, one_line
from omnigraph.errors import Denied, InvalidArgument, NotFound, OmnigraphError
from omnigraph.wire.values import plain

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.protocols import GraphLike

_SHORTEST = 0.2
_COMMITS = 50
"""How many commits of a branch are looked at for what happens there."""
_MINUTE = 60_000_000
_CLEAR = "\x1b[H\x1b[2J"


@dataclass
class RateMeter:
    """Requests a second of the processes of a server, from one look to the next. A look reaches one
    of them; what is known of the others is what they said last."""

    said: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    rates: dict[int, float] = field(default_factory=dict)
    _at: dict[int, float] = field(default_factory=dict)

    def take(self, told: Mapping[str, Any], now: float) -> None:
        process = int(told["process"])
        before = self.said.get(process)
        if before is not None and now > self._at[process]:
            answered = told["answered"] - before["answered"]
            self.rates[process] = max(0.0, answered / (now - self._at[process]))
        elif before is None:
            self.rates[process] = told["answered"] / max(told["up_for"], 1.0)
        self.said[process], self._at[process] = told, now


def top(
    *,
    interval: Annotated[float, Parameter(help="seconds between two looks")] = 2.0,
    once: Annotated[bool, Parameter(negative=(), help="look once")] = False,
    cli: Cli,
) -> None:
    """Show what happens now: heads of branches, commits a minute, folds, long operations, jobs; of
    a server also the requests that are under way, and how many a second.

    On a terminal it looks again until Ctrl-C. The requests of a server are for its administrators.

    Examples:
        omnigraph top
        omnigraph top --once --json
        omnigraph top --root https://host/graphs/people --interval 5
    """
    if not interval >= _SHORTEST:
        raise InvalidArgument(f"The interval is at least {_SHORTEST} seconds, not {interval:g}.")
    meter = RateMeter()
    again = not once and cli.out.is_table and cli.out.streams.width is not None
    with cli.reading() as g:
        while True:
            row = look(g, meter, cli)
            if again:
                cli.out.raw(_CLEAR)
            cli.out.value(row, partial(_lines, row))
            if not again:
                return
            cli.out.flush()
            time.sleep(interval)


def look(g: GraphLike, meter: RateMeter, cli: Invocation) -> dict[str, Any]:
    from omnigraph.runtime import SYSTEM

    now = (cli.runtime or SYSTEM).now()
    row: dict[str, Any] = {"root": g.root}
    if is_served(cli.root):
        row["server"] = _server(cli.root, meter)
    row["branches"] = [_branch(g, name, now) for name in g.branches()]
    row["operations"] = [plain(one.to_dict()) for one in _allowed(lambda: g.recovery.list())]
    row["jobs"] = [plain(one.to_dict()) for one in _allowed(lambda: g.jobs.list()) if not one.ended]
    return row


def _allowed(ask: Any) -> list[Any]:
    """What the caller may see; nothing if that is nothing."""
    try:
        found: list[Any] = ask()
    except Denied:
        return []
    return found


def _server(root: str, meter: RateMeter) -> dict[str, Any] | None:
    """None if the server does not tell."""
    from omnigraph.client.opening import what_runs

    server = root.rstrip("/").rpartition("/graphs/")[0]
    try:
        told = what_runs(server, None)
        for _ in range(4 * told["workers"]):
            meter.take(told, time.monotonic())
            if len(meter.said) >= told["workers"]:
                break
            told = what_runs(server, None)
    except (Denied, NotFound):
        return None
    said = meter.said.values()
    return {
        "workers": told["workers"],
        "seen": len(meter.said),
        "requests_a_second": round(sum(meter.rates.values()), 2),
        "running": [one for each in said for one in each["running"]],
        "pools": [{"process": each["process"], **one} for each in said for one in each["pools"]],
        "streams": sum(each["streams"] for each in said),
        "memory_reserved": sum(each["memory_reserved"] for each in said),
    }


def _branch(g: GraphLike, name: str, now: int) -> dict[str, Any]:
    """The newest commits say what happens on a branch."""
    try:
        commits = list(islice(g.at(name).log(first_parent=True), _COMMITS))
    except OmnigraphError as error:  # deleted meanwhile, or broken: the others are still told
        return {"branch": name, "problem": error.message}
    head = commits[0]
    recent = [one for one in commits if one.created_at > now - _MINUTE]
    folds = [one for one in commits if one.kind == "optimize"]
    return {
        "branch": name,
        "commit": head.id,
        "kind": head.kind,
        "actor": head.actor,
        "age": round((now - head.created_at) / 1_000_000, 1),
        "commits_a_minute": len(recent),
        "folded": round((now - folds[0].created_at) / 1_000_000, 1) if folds else None,
    }


def _lines(row: Mapping[str, Any], paint: Paint) -> Iterator[str]:
    yield paint("bold", one_line(str(row["root"])))
    if "server" in row:
        yield ""
        yield from _server_lines(row["server"], paint)
    yield ""
    heads = ("Branch", "Head", "Age", "By", "A minute", "Folded")
    yield from _table(heads, [_branch_cells(one) for one in row["branches"]], paint)
    for title, items in (("Operations", row["operations"]), ("Jobs", row["jobs"])):
        if items:
            yield ""
            yield paint("bold", title)
            yield from (f"  {_work(one)}" for one in items)
    if not row["operations"] and not row["jobs"]:
        yield ""
        yield paint("dim", "No long operation and no job is under way.")


def _server_lines(server: Mapping[str, Any] | None, paint: Paint) -> Iterator[str]:
    if server is None:
        yield paint("dim", "What the server does now is for its administrators.")
        return
    pools: dict[str, list[int]] = {}
    for one in server["pools"]:
        sums = pools.setdefault(one["name"], [0, 0, 0])
        for place, name in enumerate(("busy", "threads", "waiting")):
            sums[place] += one[name]
    parts = [f"{server['requests_a_second']:g} requests a second"]
    parts += [f"{name} {busy}/{all_}" for name, (busy, all_, _) in pools.items()]
    waiting = sum(each[2] for each in pools.values())
    if waiting:
        parts.append(f"{waiting} waiting")
    if server["seen"] < server["workers"]:
        parts.append(f"{server['seen']} of {count_text(server['workers'], 'worker')} seen")
    yield ", ".join(parts)
    for one in server["running"]:
        words = (one["method"], one["route"] or "", one["graph"] or "", one["actor"] or "")
        yield f"  {one['seconds']:8.1f} s  {one_line(' '.join(word for word in words if word))}"


def _branch_cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    if "problem" in one:
        return one_line(one["branch"]), one_line(one["problem"]), "", "", "", ""
    return (
        one_line(one["branch"]),
        one["commit"],
        _age(one["age"]),
        one_line(one["actor"] or one["kind"]),
        f"{one['commits_a_minute']}{'+' if one['commits_a_minute'] == _COMMITS else ''}",
        "" if one["folded"] is None else f"{_age(one['folded'])} ago",
    )


def _work(one: Mapping[str, Any]) -> str:
    words = [one["kind"] or "", one.get("state") or ("dead" if one.get("dead") else "running")]
    if one.get("total"):
        words.append(f"{one['done']} of {one['total']}")
    words += [str(one[name]) for name in ("doing", "actor", "branch") if one.get(name)]
    return f"{one['id']}  {one_line(', '.join(word for word in words if word))}"


def _age(seconds: float) -> str:
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {name}"
    return f"{max(0, int(seconds))} s"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]], paint: Paint) -> Iterator[str]:
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    for number, row in enumerate((heads, *rows)):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield paint("dim", text.rstrip()) if number == 0 else text.rstrip()
