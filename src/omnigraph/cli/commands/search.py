"""Owns the command `search`: by words or by meaning, over all texts of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import AtRef, Cli
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import one_line
from omnigraph.engine.query.search.everywhere import SearchBy
from omnigraph.errors import InvalidArgument


def search(
    *words: Annotated[str, Parameter(help="the words to look for")],
    type: Annotated[
        tuple[str, ...], Parameter(negative=(), help="search only this type; may be repeated")
    ] = (),
    near: Annotated[
        bool, Parameter(negative=(), help="by what texts mean, through @embed vectors")
    ] = False,
    hybrid: Annotated[bool, Parameter(negative=(), help="by words and by meaning")] = False,
    limit: Annotated[
        int, Parameter(name=["--limit", "-n"], help="the largest number of results")
    ] = 10,
    ref: AtRef = "main",
    cli: Cli,
) -> None:
    """Find entities by the words of their texts, best first, with the passage that answers.

    Looks in every property with @index, or in all texts if none has one. What is found can be
    looked at by 'omnigraph entity', or walked from by a query.

    Examples:
        omnigraph search graph databases
        omnigraph search "graph databases" --type Paper -n 3
        omnigraph search "how do branches merge" --near
    """
    if near and hybrid:
        raise InvalidArgument("Give --near or --hybrid, not both.")
    if not any(word.strip() for word in words):
        raise InvalidArgument("There are no words to look for.")
    by: SearchBy = "meaning" if near else "both" if hybrid else "words"
    with cli.reading() as g:
        found = (
            g.at(ref).search(" ".join(words), types=type or None, limit=limit, by=by).to_pylist()
        )
    if not cli.out.is_table:
        cli.out.rows(found, columns=["type", "id", "score", "property", "passage"])
        return

    def view(paint: Paint) -> Iterator[str]:
        for hit in found:
            name = paint("bold", one_line(f"{hit['type']} {hit['id']}"))
            yield f"{name}  {paint('dim', hit['property'])}"
            if hit["passage"]:
                yield f"    {_marked(one_line(' '.join(hit['passage'].split())), paint)}"
        if not found and by != "meaning":
            yield f"Nothing at {ref} has any of these words."
            yield "Words are compared whole; `fuzzy` in a query finds misspelt ones."
        if not found and by != "words":
            yield f"Nothing that is searched at {ref} has a vector; 'omnigraph embed' makes them."

    cli.out.lines(view(cli.out.paint))


def _marked(passage: str, paint: Paint) -> str:
    """Highlights the words that were found."""
    parts = passage.split("**")
    return "".join(paint("bold", part) if n % 2 else part for n, part in enumerate(parts))
