"""What a caller may is told beforehand, to anybody who may read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.policy.credentials import BearerCredentials
from omnigraph.policy.roles import Roles
from omnigraph.server.graphs import Graphs
from omnigraph.server.service import Service
from tests.server.serving import Site, serving


@pytest.fixture
def reading(people: Path) -> Iterator[Site]:
    """A server for which everybody is a reader."""
    everybody = BearerCredentials(None, None, anonymous="reader")
    service = Service(
        Graphs({"people": str(people)}), credentials=everybody, guarded=True, policy=Roles()
    )
    with serving(service) as found:
        yield found


def test_a_reader_is_told_what_is_in_a_graph_but_not_its_format(reading: Site, site: Site) -> None:
    told = reading.get("/graphs/people")
    assert told.status == 200
    assert told.json["format"] is None
    assert told.json["types"] == site.get("/graphs/people").json["types"]
    assert site.get("/graphs/people").json["format"] is not None


@pytest.mark.parametrize("action", ["maintain", "cleanup", "mutate"])
def test_what_concerns_the_graph_is_asked_like_what_concerns_a_branch(
    reading: Site, site: Site, action: str
) -> None:
    address = f"/graphs/people/may?action={action}"
    assert reading.get(address).json["allowed"] is False
    assert site.get(address).json["allowed"] is True
    assert reading.get("/graphs/people/may?action=read").json["allowed"] is True


def test_a_scan_begins_at_any_row(site: Site) -> None:
    def names(**more: object) -> list[str]:
        found = site.post("/graphs/people/scan", {"type": "Person", "columns": ["name"], **more})
        assert found.status == 200, found.body
        return [row["name"] for row in found.json["rows"]]

    everybody = names()
    assert len(everybody) == 3
    assert names(offset=1, limit=1) == everybody[1:2]
    assert names(offset=2) == everybody[2:]
    assert names(offset=3) == []
    page = site.post("/graphs/people/scan", {"type": "Person", "offset": 1, "limit": 1}).json
    both = {"type": "Person", "cursor": page["cursor"], "offset": 1}
    assert site.post("/graphs/people/scan", both).code == "invalid_argument"
    assert site.post("/graphs/people/scan", {"type": "Person", "offset": -1}).status == 400
