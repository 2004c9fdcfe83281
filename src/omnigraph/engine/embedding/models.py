"""Owns the models that an open graph uses, and the vectors of the texts in its queries."""

from __future__ import annotations

import threading
from collections import OrderedDict

from omnigraph.embedding.port import Embedder, Model, is_blank, parse_model
from omnigraph.embedding.providers import find_embedder
from omnigraph.engine.session import Session
from omnigraph.errors import NoModel, OmnigraphError, UnknownModel
from omnigraph.model.catalog import Property
from omnigraph.model.types import VectorType, type_text

_KEPT = 1024


class Models:
    """The models of one session. Each is made when it is first used."""

    def __init__(self, session: Session) -> None:
        self._settings = session.settings
        self._runtime = session.runtime
        self._lock = threading.Lock()
        self._made: dict[Model, Embedder] = {}
        self._asked: OrderedDict[tuple[Model, int, str], tuple[float, ...]] = OrderedDict()

    def of(self, model: Model) -> Embedder:
        with self._lock:
            if model not in self._made:
                self._made[model] = find_embedder(model, self._settings, self._runtime)
            return self._made[model]

    def vector_of(self, prop: Property, text: str) -> tuple[float, ...]:
        model, dimension = model_of(prop), dimension_of(prop)
        if is_blank(text):
            return (0.0,) * dimension  # which is near nothing
        asked = (model, dimension, text)
        with self._lock:
            if (known := self._asked.get(asked)) is not None:
                self._asked.move_to_end(asked)
                return known
        within = min(self._settings.request_timeout, self._settings.embed_retry_for)
        vector = tuple(self.of(model).embed([text], dimension, within=within)[0].tolist())
        with self._lock:
            self._asked[asked] = vector
            while len(self._asked) > _KEPT:
                self._asked.popitem(last=False)
        return vector


def embed_query(session: Session, prop: Property, text: str) -> tuple[float, ...]:
    """The vector of a text by the property's own model, with length 1 and the property's size. A
    blank text has a vector of zeros, which is near nothing. A session asks for each text once."""
    try:
        return session.shared(Models).vector_of(prop, text)
    except OmnigraphError as error:
        error.add_note(f"while a text was embedded for `{prop.name}`")
        raise


def model_of(prop: Property) -> Model:
    if prop.embed is None:
        raise NoModel(
            f"`{prop.name}` has no model, so a text cannot be compared with it.",
            help=f"Give a vector of {dimension_of(prop)} numbers, or say in the schema which "
            f"property and model it comes from: {prop.name}: {type_text(prop.type)} "
            '@embed("source", model="local").',
        )
    try:
        return parse_model(prop.embed.model)
    except UnknownModel as error:
        named = f"There is no model {prop.embed.model!r}, by which `{prop.name}` is embedded."
        raise UnknownModel(named, help=error.hint) from None


def dimension_of(prop: Property) -> int:
    assert isinstance(prop.type, VectorType), f"{prop.name} is no vector"  # the checker saw to it
    return prop.type.dimension
