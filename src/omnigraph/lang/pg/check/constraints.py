"""Owns keys, unique constraints, indexes, ranges and checks of one type."""

from __future__ import annotations

import msgspec

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Findings, Meant
from omnigraph.lang.pg.check.annotations import CONSTRAINT_FORMS
from omnigraph.lang.pg.check.body import BodyDraft, Flag, describe_type
from omnigraph.lang.pg.tree import ConstraintNode, LiteralNode, Name, RangeNode
from omnigraph.lang.values import (
    PATTERN_HELP,
    MisfitError,
    fit_float,
    fit_integer,
    pattern_error,
    pattern_matches,
)
from omnigraph.model.schema import Check, Literal, PropertyDecl, Range
from omnigraph.model.types import (
    FLOATS,
    INTEGER_RANGES,
    Base,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
)

_ENDS = ("src", "dst")


class Constraints(msgspec.Struct):
    """Dictionaries, because they keep order and have no duplicates. `keyed` says that there was a
    key, even a wrong one."""

    key: tuple[str, ...] = ()
    uniques: dict[tuple[str, ...], None] = {}
    indexes: dict[tuple[str, ...], None] = {}
    ranges: dict[str, Range] = {}
    checks: dict[Check, None] = {}
    keyed: bool = False
    own: set[tuple[str, tuple[str, ...]]] = set()


def check_constraints(draft: BodyDraft, inherited: Constraints, findings: Findings) -> Constraints:
    """The constraints of a type, preceded by those of its interfaces."""
    found = Constraints(
        key=inherited.key,
        keyed=inherited.keyed,
        uniques=dict(inherited.uniques),
        indexes=dict(inherited.indexes),
    )
    for item in draft.constraints:
        if isinstance(item, Flag):
            _add_names(item.name, (item.property,), item.span, draft, found, findings)
        elif item.name.text == "range":
            _add_range(item, draft, found, findings)
        elif item.name.text == "check":
            _add_check(item, draft, found, findings)
        else:
            names = _read_names(item, draft, findings)
            if names is not None:
                _add_names(item.name.text, names, item.span, draft, found, findings)
            elif item.name.text == "key":
                found.keyed = True
    _check_defaults(draft, found, findings)
    return found


def _read_names(
    node: ConstraintNode, draft: BodyDraft, findings: Findings
) -> tuple[str, ...] | None:
    """The properties that a constraint lists, or None if one of them is wrong."""
    names: list[str] = []
    sound = True
    for argument in node.arguments:
        value = argument.value
        if argument.name is not None or not isinstance(value, Name):
            form = CONSTRAINT_FORMS[node.name.text]
            message = f"`@{node.name.text}(…)` takes names of properties"
            findings.add("P135", argument.span, message, f"write `{form}`")
            sound = False
        elif not _knows(value, draft, findings):
            sound = False
        elif value.text in names:
            findings.add("P108", value.span, f"`{value.text}` is given twice")
            sound = False
        else:
            names.append(value.text)
    return tuple(names) if sound else None


def _knows(name: Name, draft: BodyDraft, findings: Findings) -> bool:
    """Whether the name is a property, or an end of an edge."""
    if name.text in draft.properties or (draft.kind == "edge" and name.text in _ENDS):
        return True
    if name.text == "id":
        findings.add("P107", name.span, "`id` is unique and indexed by itself")
    elif not draft.damaged:
        candidates = [*draft.properties, *(_ENDS if draft.kind == "edge" else ())]
        message = f"there is no property `{name.text}`"
        findings.add("P107", name.span, message, Meant(name.text, candidates))
    return False


def _add_names(
    kind: str,
    names: tuple[str, ...],
    span: Span,
    draft: BodyDraft,
    found: Constraints,
    findings: Findings,
) -> None:
    if (kind, names) in found.own:
        findings.add("P134", span, f"`@{kind}({', '.join(names)})` is given twice")
        return
    found.own.add((kind, names))
    if kind == "key":
        _add_key(names, span, draft, found, findings)
        return
    held = found.uniques if kind == "unique" else found.indexes
    if _all_fit(kind, names, span, draft, findings):
        held[names] = None


def _add_key(
    names: tuple[str, ...], span: Span, draft: BodyDraft, found: Constraints, findings: Findings
) -> None:
    if found.keyed and found.key != names:
        message = "a type has one key"
        findings.add("P130", span, message, "write one `@key(a, b)` for a key of many properties")
        return
    found.keyed = True
    if draft.kind == "edge" and not set(_ENDS) & set(names):
        own = ", ".join(("", *names))
        message = "the key of an edge holds at least one of its ends"
        form = f"write `@key(src, dst{own})`, or `@key(src{own})` for an edge whose end may move"
        findings.add("P132", span, message, form)
        return
    for name in names:
        decl = draft.decl(name)
        if decl is not None and (decl.nullable or not _is_plain(decl.type)):
            what = describe_type(decl.type, decl.nullable)
            message = f"`{name}` ({what}) cannot be part of a key"
            help_ = "a key is never null: remove the `?`" if decl.nullable else None
            findings.add("P131", span, message, help_)
            return
    found.key = names


def _is_plain(kind: PropertyType) -> bool:
    return not isinstance(kind, ListType | VectorType) and kind != ScalarType(Base.BLOB)


def _all_fit(
    kind: str, names: tuple[str, ...], span: Span, draft: BodyDraft, findings: Findings
) -> bool:
    """Anything but a blob can be indexed, lists and vectors only alone. Values without a useful
    equality (lists, vectors, blobs) cannot be unique."""
    for name in names:
        decl = draft.decl(name)
        if decl is None or _is_plain(decl.type):
            continue
        alone = kind == "index" and len(names) == 1 and decl.type != ScalarType(Base.BLOB)
        if not alone:
            message = f"`{name}` ({describe_type(decl.type, False)}) does not fit"
            findings.add("P133", span, f"{message} `@{kind}({', '.join(names)})`")
            return False
    return True


def _target(node: ConstraintNode, draft: BodyDraft, findings: Findings) -> Name | None:
    """The property of a range or a check, which is the first of its two arguments."""
    first = node.arguments[0]
    if len(node.arguments) == 2 and isinstance(first.value, Name) and first.name is None:
        return first.value if _knows(first.value, draft, findings) else None
    form = CONSTRAINT_FORMS[node.name.text]
    before = [p.name for p in draft.properties.values() if p.name.span.end <= node.span.start]
    if before and not isinstance(first.value, Name):
        form = form.replace("(a,", f"({before[-1].text},")
    message = f"`@{node.name.text}(…)` takes a property and what its values must meet"
    findings.add("P135", node.span, message, f"write `{form}`")
    return None


def _fitting(
    node: ConstraintNode, name: Name, bases: set[Base], draft: BodyDraft, findings: Findings
) -> PropertyDecl | None:
    decl = draft.decl(name.text)
    if decl is None and name.text in draft.properties:
        return None
    if decl is not None and isinstance(decl.type, ScalarType) and decl.type.base in bases:
        return decl
    what = describe_type(decl.type, False) if decl else "kept by the system"
    message = f"`{name.text}` ({what}) does not fit `@{node.name.text}`"
    findings.add("P133", name.span, message, expected=tuple(b.value for b in Base if b in bases))
    return None


def _add_range(
    node: ConstraintNode, draft: BodyDraft, found: Constraints, findings: Findings
) -> None:
    name = _target(node, draft, findings)
    if name is None:
        return
    value = node.arguments[1].value
    if not isinstance(value, RangeNode) or node.arguments[1].name is not None:
        message = "the second argument of `@range` is a range"
        help_ = "write `a..b`, `a..` or `..b`"
        findings.add("P135", node.arguments[1].span, message, help_)
        return
    decl = _fitting(node, name, {*INTEGER_RANGES, *FLOATS}, draft, findings)
    if decl is None or not isinstance(decl.type, ScalarType):
        return
    try:
        low, high = _bound(value.low, decl.type.base), _bound(value.high, decl.type.base)
    except MisfitError as misfit:
        findings.add("P137", value.span, f"a bound does not fit `{name.text}`: {misfit}")
        return
    if low is not None and high is not None and low > high:
        message = "this range holds nothing: its low end is above its high end"
        findings.add("P136", value.span, message, f"did you mean `{high}..{low}`?")
    elif name.text in found.ranges:
        message = f"`{name.text}` already has a range"
        findings.add("P134", node.span, message, "write both bounds in one `@range`")
    else:
        found.ranges[name.text] = Range(name.text, low, high)


def _bound(node: LiteralNode | None, base: Base) -> int | float | None:
    if node is None:
        return None
    return fit_integer(node.value, base) if base in INTEGER_RANGES else fit_float(node.value, base)


def _add_check(
    node: ConstraintNode, draft: BodyDraft, found: Constraints, findings: Findings
) -> None:
    name = _target(node, draft, findings)
    if name is None:
        return
    argument = node.arguments[1]
    value = argument.value
    pattern = value.value if isinstance(value, LiteralNode) else None
    if not isinstance(pattern, str) or argument.name is not None:
        message = "the second argument of `@check` is a pattern in double quotes"
        findings.add("P135", argument.span, message)
        return
    if _fitting(node, name, {Base.STRING}, draft, findings) is None:
        return
    problem = pattern_error(pattern)
    check = Check(name.text, pattern)
    if problem is not None:
        message = f"the pattern is not a regular expression: {problem}"
        help_ = PATTERN_HELP
        findings.add("P138", argument.span, message, help_)
    elif check in found.checks:
        findings.add("P134", node.span, f"`{name.text}` already has this check")
    else:
        found.checks[check] = None


def _check_defaults(draft: BodyDraft, found: Constraints, findings: Findings) -> None:
    """A default must be a value that can be stored, and cannot be the identity of an entity."""
    patterns: dict[str, list[str]] = {}
    for check in found.checks:
        patterns.setdefault(check.property, []).append(check.pattern)
    for prop in draft.properties.values():
        decl = prop.decl
        if decl is None or decl.default is None or prop.default_span is None:
            continue
        value = decl.default.value
        if decl.name in found.key:
            message = f"`{decl.name}` is part of the key and cannot have a default"
            findings.add("P145", prop.default_span, message)
        elif decl.name in found.ranges and not _within(value, found.ranges[decl.name]):
            message = f"the default lies outside the range of `{decl.name}`"
            findings.add("P144", prop.default_span, message)
        elif not all(pattern_matches(p, str(value)) for p in patterns.get(decl.name, ())):
            message = f"the default does not meet the check of `{decl.name}`"
            findings.add("P144", prop.default_span, message)


def _within(value: Literal, limits: Range) -> bool:
    if not isinstance(value, int | float):
        return True
    above = limits.low is None or value >= limits.low
    return above and (limits.high is None or value <= limits.high)
