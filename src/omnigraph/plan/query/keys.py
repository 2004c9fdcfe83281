"""Owns the ids that a key test asks for, which are known before anything is read. Pure."""

from __future__ import annotations

from typing import Any

from omnigraph.lang.gq.checked import Expression, ParameterValue
from omnigraph.model.catalog import GraphType
from omnigraph.model.identity import InvalidKeyError, derive_id
from omnigraph.plan.query.logical import KeyTest
from omnigraph.plan.values.rows import Bindings, fixed_value


def asked_ids(kind: GraphType, key: KeyTest, bindings: Bindings) -> list[str]:
    """Each id once. A value that cannot be an id matches no entity."""
    return list(dict.fromkeys(text for text in _texts(kind, key, bindings) if text is not None))


def _texts(kind: GraphType, key: KeyTest, bindings: Bindings) -> list[str | None]:
    if key.ids is not None:
        value = _python(key.ids, bindings)
        return (list(value) if value is not None else []) if key.many else [value]
    values = {name: _python(value, bindings) for name, value in key.values}
    if not key.many:
        return [_derived(kind, values)]
    ((name, listed),) = values.items()
    return [_derived(kind, {name: value}) for value in listed or ()]


def _python(value: Expression, bindings: Bindings) -> Any:
    if isinstance(value, ParameterValue):
        return bindings.parameters[value.name]
    return fixed_value(value, bindings).as_py()


def _derived(kind: GraphType, values: dict[str, Any]) -> str | None:
    if any(value is None for value in values.values()):
        return None
    try:
        return derive_id(kind, values)
    except InvalidKeyError:
        return None
