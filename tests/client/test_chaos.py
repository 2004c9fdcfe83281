"""Over a line that breaks no write is lost, none is done twice, and no short answer is taken for a
whole one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import omnigraph
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.errors import OutcomeUnknown, Unavailable
from omnigraph.model.version import UNSEEN
from omnigraph.settings import Settings
from tests.client.chaos import breaking
from tests.client.served import Served

PATIENT = Settings(retry_for=60.0)
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_write_lands_once(g: RemoteGraph, server: Served, seed: int) -> None:
    name = g.root.rpartition("/")[2]
    done: list[str] = []

    def work(writer: int) -> None:
        with omnigraph.open(f"{line.url}/graphs/{name}", settings=PATIENT) as far:
            for number in range(6):
                key = f"w{writer}-{number}"
                if number % 3 == 0:
                    far.mutate(f'insert Person {{ name: "{key}" }}')
                elif number % 3 == 1:
                    with far.transaction(message=key) as tx:
                        tx.append("Person", {"name": key})
                        tx.append("Note", {"text": key})
                else:
                    far.load([{"name": key}], type="Person")
                done.append(key)

    with breaking(server.url, seed=seed, rate=1.0) as line:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        broken = sum(line.fates.values()) - line.fates["whole"]
    assert broken > 10, line.fates
    assert len(done) == 18
    people = sorted(g.scan("Person").read_all()["name"].to_pylist())
    assert people == sorted(done)
    notes = g.scan("Note").read_all()["text"].to_pylist()  # they have no key: twice would show
    assert sorted(notes) == sorted(key for key in done if key.endswith(("-1", "-4")))
    assert sum(commit.kind not in UNSEEN for commit in g.log()) == 1 + 18


@pytest.mark.parametrize("seed", SEEDS)
def test_no_short_answer_is_taken_for_a_whole_one(
    g: RemoteGraph, server: Served, seed: int
) -> None:
    g.load([{"text": f"note {n:06}"} for n in range(20_000)], type="Note")
    name, whole, broken = g.root.rpartition("/")[2], 0, 0
    with breaking(server.url, seed=seed, rate=1.0, most=2_000_000) as line:
        far = omnigraph.open(f"{line.url}/graphs/{name}", settings=PATIENT)
        for number in range(10):
            try:
                rows = _read(far, number)
            except Unavailable:
                broken += 1
            else:
                assert rows == 20_000
                whole += 1
        far.close()
    assert whole, line.fates
    assert broken, line.fates


def _read(far: omnigraph.Graph, number: int) -> int:
    match number % 4:
        case 0:
            return len(far.query("match { $n: Note } return { $n.text }"))
        case 1:
            return int(far.scan("Note").read_all().num_rows)
        case 2:
            return len(list(far.diff("main~1")))
        case _:
            lines = _Lines()
            far.export(types=["Note"], to=lines)
            return lines.count


class _Lines:
    def __init__(self) -> None:
        self.count = 0

    def write(self, data: Any) -> int:
        self.count += bytes(data).count(b"\n")
        return len(data)


def test_what_is_not_known_is_said_to_be_unknown(g: RemoteGraph, server: Served) -> None:
    name = g.root.rpartition("/")[2]
    with breaking(server.url, seed=1, rate=0.0) as line:
        far = omnigraph.open(f"{line.url}/graphs/{name}", settings=Settings(retry_for=0.3))
        far.mutate('insert Note { text: "before" }')
        far.close()
        far = omnigraph.open(f"{line.url}/graphs/{name}", settings=Settings(retry_for=0.3))
        line.rate, line._random = 1.0, _Always("no_answer")  # type: ignore[assignment]
        far._served.connection.close()  # type: ignore[attr-defined]
        with pytest.raises(OutcomeUnknown) as caught:
            far.mutate('insert Note { text: "after" }')
        far.close()
    assert caught.value.applied is None
    assert caught.value.details["key"]


class _Always:
    """A source of chance that always draws the same fate."""

    def __init__(self, fate: str) -> None:
        self._fate = fate

    def random(self) -> float:
        return 0.0

    def choice(self, of: Any) -> Any:
        return self._fate if self._fate in of else of[0]

    def randrange(self, *_: int) -> int:
        return 1
