"""Owns the commands about policies: check them, test them, explain what they decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.colours import Paint

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.policy.cases import CaseOutcome
    from omnigraph.policy.cedar import CedarPolicies

Files = Annotated[
    tuple[str, ...],
    Parameter(name=["--policy", "-p"], negative=(), help="a .cedar file or a directory; repeat"),
]
GroupFile = Annotated[
    str | None, Parameter(name="--groups", help="a TOML file: the actors of each group")
]
Called = Annotated[
    str | None, Parameter(name="--graph", help="what policies call the graph; else as its root")
]


def check(
    *,
    policy: Files = (),
    groups: GroupFile = None,
    graph: Called = None,
    cli: Cli,
) -> None:
    """Check policies against the schema of the graph.

    Examples:
        omnigraph policy check --policy policies/
    """
    held, name = _policies(policy, groups, graph, cli)
    row = {"graph": name, "policies": held.count, "digest": held.digest}
    cli.out.value(row, lambda _: [f"{held.count} policies hold for {name}."])


def try_(
    file: Annotated[str, Parameter(help="a TOML file of cases")],
    /,
    *,
    policy: Files = (),
    groups: GroupFile = None,
    graph: Called = None,
    cli: Cli,
) -> int:
    """Ask policies the questions of a file, and compare the answers.

    A case says who asks (`actor`, `groups`), what for (`action`, `resource`: graph, branch:NAME,
    type:NAME, query:NAME, server) and whether it is `allowed`; of a type, `shows` may list the ids
    of all rows that the actor sees.

    Examples:
        omnigraph policy test cases.toml --policy policies/
    """
    from omnigraph.policy.cases import read_cases, try_case

    held, name = _policies(policy, groups, graph, cli)
    cases = read_cases(cli.read_text(file), file)
    with cli.reading() as g:
        found = [try_case(case, held, name, g) for case in cases]
    wrong = [one for one in found if one.problem]
    rows = [{"case": one.told, "problem": one.problem} for one in found]
    cli.out.rows(rows, view=lambda paint: _outcomes(found, paint))
    return 6 if wrong else 0


def explain(
    actor: Annotated[str, Parameter(help="who asks")],
    action: Annotated[str, Parameter(help="read, query, mutate, merge, see, write …")],
    resource: Annotated[
        str, Parameter(help="graph, branch:NAME, type:NAME, query:NAME, server")
    ] = "branch:main",
    /,
    *,
    group: Annotated[
        tuple[str, ...], Parameter(name="--group", negative=(), help="a group of the actor; repeat")
    ] = (),
    policy: Files = (),
    groups: GroupFile = None,
    graph: Called = None,
    cli: Cli,
) -> None:
    """Show what policies decide, which of them do, and which rows of a type are seen.

    Examples:
        omnigraph policy explain ada mutate branch:main --policy policies/
        omnigraph policy explain bot see type:Person --policy policies/
    """
    from omnigraph.policy.cases import PolicyCase, explain_case

    held, name = _policies(policy, groups, graph, cli)
    case = PolicyCase(actor=actor, action=action, resource=resource, groups=group)
    with cli.reading() as g:
        verdict, rows = explain_case(case, held, name, g)
    row = {"allowed": verdict.allowed, "policies": list(verdict.policies), "rows": rows}
    said = "may" if verdict.allowed else "may not"

    def lines(paint: Paint) -> Iterator[str]:
        yield paint("green" if verdict.allowed else "red", f"{actor} {said} {action} {resource}")
        if rows is None or verdict.policies:
            yield "  by " + (", ".join(verdict.policies) or "no policy")
        if rows is not None:
            yield f"  rows: {rows}"

    cli.out.value(row, lines)


def _outcomes(found: list[CaseOutcome], paint: Paint) -> Iterator[str]:
    for one in found:
        if one.problem:
            yield f"{paint('red', 'wrong')}  {one.told}: {one.problem}"
        else:
            yield f"{paint('green', 'right')}  {one.told}"
    wrong = sum(bool(one.problem) for one in found)
    yield f"{len(found) - wrong} of {len(found)} are right."


def _policies(
    files: tuple[str, ...], groups: str | None, graph: str | None, cli: Invocation
) -> tuple[CedarPolicies, str]:
    from omnigraph.engine.permissions import graph_name
    from omnigraph.errors import EngineMissing, InvalidArgument

    if not files:
        raise InvalidArgument("Which policies?", help="Say --policy FILE, or a directory of them.")
    try:
        from omnigraph.policy.cedar import CedarPolicies
    except ModuleNotFoundError:
        raise EngineMissing(
            "Cedar is not installed.", help="Say: pip install 'omnigraph[server]'"
        ) from None
    with cli.reading() as g:
        name = graph or graph_name(g.root)
        catalog = g.snapshot().catalog
    return CedarPolicies.read(files, groups=groups, graphs={name: catalog}), name
