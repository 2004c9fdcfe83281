"""Owns analyses, by name: how a text becomes the words that a search compares.

An analysis never changes under its name, because index segments are found by it. A better one gets
a new name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from omnigraph.model.schema import PropertyDecl

ANNOTATION: Final = "analyzer"


@dataclass(frozen=True)
class Analysis:
    """`options` are those of Lance's tokenizer, in a hashable form."""

    name: str
    options: tuple[tuple[str, Any], ...]


_WORDS: Final = (("base_tokenizer", "icu/split"), ("lower_case", True), ("ascii_folding", True))


def _language(name: str) -> Analysis:
    more = (("language", name.capitalize()), ("stem", True), ("remove_stop_words", True))
    return Analysis(name, _WORDS + more)


STANDARD: Final = Analysis("standard", (*_WORDS, ("stem", False), ("remove_stop_words", False)))
_LANGUAGES: Final = (
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "hungarian",
    "italian",
    "norwegian",
    "portuguese",
    "russian",
    "spanish",
    "swedish",
)
ANALYSES: Final[dict[str, Analysis]] = {
    STANDARD.name: STANDARD,
    **{name: _language(name) for name in _LANGUAGES},
}


def analysis_of(prop: PropertyDecl) -> Analysis:
    """The analysis that `@analyzer("…")` names, or the standard one. A schema is accepted only with
    known names, but a later release may have accepted another one."""
    for annotation in prop.annotations:
        if annotation.name == ANNOTATION and isinstance(annotation.value, str):
            return ANALYSES.get(annotation.value, STANDARD)
    return STANDARD
