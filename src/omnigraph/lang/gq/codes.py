"""Owns the table of `.gq` diagnostic codes. Documentation and golden tests use it."""

from __future__ import annotations

from typing import Final

MORE: Final = "Q000"

TITLES: Final[dict[str, str]] = {
    # Syntax and size.
    MORE: "More problems than are shown",
    "Q001": "Unexpected text",
    "Q002": "Character that the language does not know",
    "Q003": "String without an end",
    "Q004": "Comment without an end",
    "Q005": "Escape that strings do not know",
    "Q006": "Number that cannot be read",
    "Q007": "Block without an end",
    "Q008": "Unexpected end of the text",
    "Q009": "More than a query may hold",
    "Q010": "Nested too deeply",
    "Q011": "Result without a name",
    "Q012": "Limit or offset given twice",
    "Q013": "No such query in the text",
    "Q014": "Query declared twice",
    # Names and types.
    "T1": "Unknown type",
    "T2": "Unknown property in a binding",
    "T3": "Value that does not fit",
    "T4": "Unknown edge",
    "T5": "End that does not fit, or a variable of two types",
    "T6": "Unbound variable, or unknown property or function",
    "T7": "Operands that do not fit",
    "T8": "Argument that does not fit an aggregate",
    "T9": "Value that is no key beside an aggregate",
    "T10": "Unknown type in a mutation",
    "T11": "Property that a mutation cannot set or read",
    "T12": "Required property left out",
    "T13": "Assigned or declared twice",
    "T14": "Undeclared parameter",
    "T15": "Hop bounds that cannot be",
    "T17": "Nearest without a limit",
    "T19": "Operands that do not fit a search for vectors",
    "T20": "Operands that do not fit a search for words",
    "T21": "Rank that cannot be",
    "T22": "Undirected edge between different types",
    "T23": "Edge variable in the wrong place",
    "T24": "Blob as a value",
    "T25": "Result column given twice",
    "T26": "Parts of a union that do not fit",
    # Lint.
    "L201": "Nullable property that nothing sets",
    "L202": "Mutation without parameters",
    "L203": "Cross product",
    "L204": "Variable that is never used",
}
