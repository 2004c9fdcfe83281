"""A graph whose texts a provider over real HTTP embeds, and nothing of this machine's user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.settings import Settings
from tests.bench.embeddings import Provider, provider
from tests.unit.engine.clock import Clock

SCHEMA = """
node Doc {
  name: String @key
  text: String?
  v: Vector(8)? @embed("text", model="openai:small")
}
node Note {
  name: String @key
  body: String
  v: Vector(64) @embed("body")
}
node Plain { name: String @key  w: Vector(4)? }
edge Cites: Doc -> Doc {
  why: String?
  v: Vector(8)? @embed("why", model="openai:small")
}
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("OMNIGRAPH_EMBED_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "omnigraph" / "embed"


@pytest.fixture
def there() -> Iterator[Provider]:
    with provider() as made:
        yield made


@pytest.fixture
def g(there: Provider, tmp_path: Path) -> Iterator[Graph]:
    settings = Settings(embed_url=there.url, embed_retry_for=30.0)
    root = tmp_path / "g"
    with omnigraph.init(root, schema=SCHEMA, settings=settings, runtime=Clock()) as made:
        yield made
