"""Owns the table of `.pg` diagnostic codes. Documentation and golden tests use it."""

from __future__ import annotations

from typing import Final

MORE: Final = "P000"

TITLES: Final[dict[str, str]] = {
    # Syntax.
    MORE: "More problems than are shown",
    "P001": "Unexpected text",
    "P002": "Character that the language does not know",
    "P003": "String without an end",
    "P004": "Comment without an end",
    "P005": "Escape that strings do not know",
    "P006": "Number that cannot be read",
    "P007": "Body without an end",
    "P008": "Unexpected end of the text",
    # Names.
    "P101": "Type declared twice",
    "P102": "Property declared twice",
    "P103": "Name that is reserved",
    "P104": "Name in the wrong case",
    "P105": "Unknown node type",
    "P106": "Unknown interface",
    "P107": "Unknown property",
    "P108": "Name given twice",
    # Types.
    "P110": "Unknown property type",
    "P111": "Vector dimension out of bounds",
    "P112": "List of something that lists cannot hold",
    "P113": "Enum value given twice",
    "P114": "Enum value that is no value",
    # Interfaces.
    "P120": "Property that clashes with an interface",
    "P121": "Constraint in an interface",
    # Keys and constraints.
    "P130": "More than one key",
    "P131": "Property that cannot be part of a key",
    "P132": "Edge key without an end",
    "P133": "Property that does not fit the constraint",
    "P134": "Constraint given twice",
    "P135": "Arguments that do not fit the constraint",
    "P136": "Range that holds nothing",
    "P137": "Range bound that does not fit the property",
    "P138": "Pattern that is no regular expression",
    # Annotations.
    "P140": "Annotation given twice",
    "P141": "Annotation in the wrong place",
    "P142": "Arguments that do not fit the annotation",
    "P143": "Cardinality that no edge can meet",
    "P144": "Default that does not fit the property",
    "P145": "Default where there can be none",
    "P146": "Embedding without a String source",
    "P147": "Rename that cannot be",
    # Lint.
    "L101": "Interface that no type implements",
    "L102": "Unique constraint that the key implies",
    "L103": "Index on the key",
    "L104": "Index that a unique constraint implies",
    "L105": "Constraint that another one implies",
    "L106": "Enum with one value",
    "L107": "Nullable property with a default",
    "L108": "Constraint that says nothing",
    "L109": "Annotation that looks like another one",
    "L110": "Names that differ only in case",
    "L111": "Node type and edge type of one name",
    "L112": "Unique property with a default",
}
