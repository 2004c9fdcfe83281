"""Writers that are killed at any time, and the model of what each of them has done."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import pyarrow.compute as pc

import omnigraph
from omnigraph.engine.graph import Graph

SCHEMA = """
node Person { name: String @key  writer: I64  age: I64 }
node Note { writer: I64  number: I64 }
edge Knows: Person -> Person { writer: I64 }
"""


@dataclass
class Model:
    """What the rows of one writer are after its first so many operations."""

    people: dict[str, int] = field(default_factory=dict)
    notes: list[int] = field(default_factory=list)
    knows: set[str] = field(default_factory=set)

    def apply(self, writer: int, number: int) -> None:
        match number % 5:
            case 0:
                self.notes.append(number)
            case 1:
                self.people[regular(writer, number)] = number
            case 2:
                self.people[guest(writer, number)] = number
                self.knows.add(guest(writer, number))
                self.notes.append(number)
            case 3:
                if number % 10 == 3:
                    self.people.pop(guest(writer, number - 1), None)
                    self.knows.discard(guest(writer, number - 1))
                else:
                    self.people[guest(writer, number - 1)] = number
            case _:
                for name in self.people:
                    self.people[name] = number


def model_after(writer: int, operations: int) -> Model:
    model = Model()
    for number in range(operations):
        model.apply(writer, number)
    return model


def regular(writer: int, number: int) -> str:
    return f"{writer}-r{number % 7}"


def guest(writer: int, number: int) -> str:
    return f"{writer}-g{number}"


def read_rows(g: Graph, writer: int) -> Model:
    snapshot = g.snapshot()
    mine = pc.field("writer") == writer
    people = snapshot.scan("Person", filter=mine).read_all()
    notes = snapshot.scan("Note", filter=mine).read_all()["number"].to_pylist()
    knows = snapshot.scan("Knows", filter=mine).read_all()
    assert knows["src"].to_pylist() == knows["dst"].to_pylist()
    assert len(set(people["name"].to_pylist())) == people.num_rows
    assert len(set(knows["src"].to_pylist())) == knows.num_rows
    named = dict(zip(people["name"].to_pylist(), people["age"].to_pylist(), strict=True))
    return Model(named, sorted(notes), set(knows["src"].to_pylist()))


def write(g: Graph, writer: int, number: int) -> None:
    with g.transaction(actor=f"writer-{writer}", message=str(number)) as tx:
        match number % 5:
            case 0:
                tx.append("Note", [{"writer": writer, "number": number}])
            case 1:
                row = {"name": regular(writer, number), "writer": writer, "age": number}
                tx.upsert("Person", [row])
            case 2:
                name = guest(writer, number)
                tx.upsert("Person", [{"name": name, "writer": writer, "age": number}])
                tx.append("Knows", [{"src": name, "dst": name, "writer": writer}])
                tx.append("Note", [{"writer": writer, "number": number}])
            case 3:
                name = guest(writer, number - 1)
                if number % 10 == 3:
                    tx.delete("Person", where=pc.field("name") == name)
                else:
                    tx.upsert("Person", [{"name": name, "writer": writer, "age": number}])
            case _:
                tx.update("Person", set={"age": number}, where=pc.field("writer") == writer)


def keep_writing(
    root: str, environment: dict[str, str], writer: int, first: int, acknowledged: Connection
) -> None:
    """Until it is killed; tells each number once its commit was acknowledged."""
    os.environ.update(environment)
    with omnigraph.open(root) as g, contextlib.suppress(BrokenPipeError):
        number = first
        while True:
            write(g, writer, number)
            acknowledged.send(number)
            number += 1


def keep_compacting(root: str, environment: dict[str, str], published: Connection) -> None:
    os.environ.update(environment)
    with omnigraph.open(root) as g, contextlib.suppress(BrokenPipeError):
        while True:
            published.send(g.optimize().commit is not None)
