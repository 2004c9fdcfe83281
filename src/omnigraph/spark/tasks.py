"""Owns running our functions on executors: tasks are passed as values, answers come back as values,
and errors keep their class."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from omnigraph.errors import EngineMissing, InvalidArgument, InvalidData, StoreFailure
from omnigraph.model.violation import Violation
from omnigraph.spark.load.journal import Journal

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
ANSWERS = "task long, answer binary"
_READERS = 16
_LACKING = (
    "ModuleNotFoundError",
    "PackageNotFoundError",
    "No module named 'omnigraph'",
    "No module named 'lance'",
)


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error that the caller must see in our own words, not in Spark's."""

    data: bool
    message: str
    help: str = ""
    violations: tuple[Violation, ...] = ()
    more: int = 0

    def error(self) -> InvalidData | InvalidArgument:
        if not self.data:
            return InvalidArgument(self.message, help=self.help or None)
        return InvalidData(self.message, violations=list(self.violations), more=self.more)


def to_failure(error: InvalidData | InvalidArgument) -> Failure:
    if isinstance(error, InvalidArgument):
        return Failure(data=False, message=error.message, help=error.hint)
    return Failure(
        data=True, message=error.message, violations=tuple(error.violations), more=error.more
    )


def answer_batch(task: int, answer: msgspec.Struct) -> pa.RecordBatch:
    told = pa.array([msgspec.json.encode(answer)], pa.binary())
    return pa.record_batch({"task": pa.array([task], pa.int64()), "answer": told})


def run_tasks(
    spark: Any,
    work: Callable[[T], Iterator[S]],
    tasks: Sequence[T],
    kind: type[S],
    *,
    journal: Journal | None = None,
    name: Callable[[T], str] | None = None,
) -> list[tuple[int, S]]:
    """Runs each task in a partition of its own, and returns the answers with the numbers of their
    tasks, in order. Only the attempt that succeeded counts. With a journal, the answers of tasks
    that an earlier run finished are taken from it, under a name that follows from their arguments,
    and the others are recorded there."""
    if not tasks:
        return []
    if journal is None or name is None:
        return _run(spark, work, tasks, range(len(tasks)), kind)
    names = [name(task) for task in tasks]
    with ThreadPoolExecutor(_READERS) as pool:
        found = enumerate(pool.map(lambda n: journal.recall(n, kind), names))
        known = {number: held for number, held in found if held is not None}

    def noted(number: int) -> Iterator[S]:
        yield from journal.note(names[number], list(work(tasks[number])), kind)

    left = [number for number in range(len(tasks)) if number not in known]
    answers = [] if not left else _run(spark, noted, range(len(tasks)), left, kind)
    answers += [(number, answer) for number, held in known.items() for answer in held]
    return sorted(answers, key=lambda found: found[0])


def _run(
    spark: Any,
    work: Callable[[T], Iterator[S]],
    tasks: Sequence[T],
    numbers: Sequence[int],
    kind: type[S],
) -> list[tuple[int, S]]:
    def run(number: int) -> Iterator[pa.RecordBatch]:
        for answer in work(tasks[number]):
            yield answer_batch(number, answer)

    return collect_answers(map_each(spark, numbers, run, ANSWERS), kind)


def map_each(
    spark: Any, tasks: Sequence[T], work: Callable[[T], Iterator[pa.RecordBatch]], schema: Any
) -> Any:
    """The rows that each task produces, as a DataFrame, with one Spark task for each."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from work(tasks[place])

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, schema)


def collect_answers(frame: Any, kind: type[S]) -> list[tuple[int, S]]:
    rows = collect(frame)
    order = pa.compute.sort_indices(rows["task"])
    rows = rows.take(order)
    decode = msgspec.json.Decoder(kind).decode
    answers = [decode(answer) for answer in rows["answer"].to_pylist()]
    return list(zip(rows["task"].to_pylist(), answers, strict=True))


@contextlib.contextmanager
def ending_jobs(spark: Any, operation: str) -> Iterator[None]:
    """Whatever ends the operation ends its jobs: Ctrl-C, a refusal, a failure."""
    tag = f"omnigraph-{operation}"
    spark.addTag(tag)
    try:
        yield
    except BaseException:
        spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)


def collect(frame: Any) -> pa.Table:
    """The rows of a DataFrame. A Spark exception becomes an error of ours."""
    with explained():
        return frame.toArrow()


@contextlib.contextmanager
def explained() -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        raise explain(error) from error


def _was_interrupted(error: BaseException | None) -> bool:
    """Ctrl-C cancels the job, and Spark's error about that hides the interrupt."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def explain(error: Exception) -> EngineMissing | StoreFailure:
    text = str(error)
    if any(word in text for word in _LACKING):
        return EngineMissing(
            "An executor of Spark cannot import omnigraph or pylance.",
            help="Install omnigraph, in this version, where the executors run.",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines]
    told = [line for line in causes if _is_exception(line)]
    first = told[-1] if told else (lines[0] if lines else type(error).__name__)
    return StoreFailure(f"A task on Spark failed: {first.rstrip('.')}.")


def _is_exception(line: str) -> bool:
    """The last line of a Python trace, or the first line of a cause in Java."""
    name = line.split(":", 1)[0]
    return bool(name) and " " not in name and name.endswith(("Error", "Exception", "Failure"))
