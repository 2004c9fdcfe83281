"""Owns the two streams: results go to stdout in the format asked for, everything else to stderr."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from omnigraph.cli.colours import Paint, choose_paint
from omnigraph.cli.options import Options
from omnigraph.cli.table import draw_table
from omnigraph.cli.value_text import csv_text, one_line, printable_json, shown_text
from omnigraph.errors import InvalidArgument
from omnigraph.wire.values import json_text, plain

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]


_FEWEST, _AROUND = 10, 6
"""Rows that are shown on any terminal, and lines around a table: its head, the prompt."""


@dataclass(frozen=True)
class Streams:
    """Where a command reads and writes. `width` and `height` are those of the terminal, None
    without one: nothing is cut that goes into a file or a pipe."""

    stdin: IO[str]
    stdout: IO[str]
    stderr: IO[str]
    width: int | None = None
    height: int | None = None

    @staticmethod
    def of_process() -> Streams:
        # A stream that the caller closed is None: what is written to it is lost.
        stdin = sys.stdin or io.StringIO()
        stdout, stderr = sys.stdout or io.StringIO(), sys.stderr or io.StringIO()
        for stream in (stdout, stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A terminal that cannot show arrows gets question marks instead of a crash.
                stream.reconfigure(errors="replace")
        if not stdout.isatty():
            return Streams(stdin, stdout, stderr)
        size = shutil.get_terminal_size((80, 24))
        return Streams(stdin, stdout, stderr, size.columns, size.lines)


def close_stream(stream: IO[str]) -> None:
    """Called when the reader has seen enough (`omnigraph log | head -1` is no failure) or when
    nothing more can be written. Nothing may be flushed to the stream when the interpreter ends."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Output:
    def __init__(self, streams: Streams, options: Options, environment: Mapping[str, str]) -> None:
        self.streams = streams
        self.options = options
        self.paint = choose_paint(options.color, streams.stdout, environment)
        self.note_paint = choose_paint(options.color, streams.stderr, environment)
        encoding = getattr(streams.stdout, "encoding", None) or "utf-8"
        self.unicode = encoding.lower().replace("-", "").startswith("utf")

    @property
    def shape(self) -> str:
        return self.options.shape

    @property
    def is_table(self) -> bool:
        return self.options.shape == "table"

    # Results

    def line(self, text: str = "") -> None:
        self.streams.stdout.write(f"{text.rstrip()}\n")

    def lines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.line(text)

    def raw(self, text: str) -> None:
        self.streams.stdout.write(text)

    def value(
        self,
        value: Row,
        view: Callable[[Paint], Iterable[str]],
        *,
        listed: Sequence[Row] | None = None,
    ) -> None:
        """One result: as a JSON object, or as lines of text for a person. `listed` holds the rows
        that go into a CSV file."""
        match self.shape:
            case "table":
                self.lines(view(self.paint))
            case "json":
                told = json.dumps(plain(value), ensure_ascii=False, indent=2)
                self.line(printable_json(told))
            case "csv" if listed is not None:
                self.rows(listed)
            case _:
                self.rows([value])

    def text(self, value: Row, text: str) -> None:
        """A text that somebody wrote: as it is for a file, shown for a terminal. `value` is the
        JSON object."""
        if not self.is_table:
            self.value(value, lambda _: ())
        elif self.streams.width is None:
            self.raw(text.rstrip("\n") + "\n")
        else:
            self.lines(shown_text(text))

    def rows(
        self,
        rows: Iterable[Row],
        *,
        columns: Sequence[str] | None = None,
        view: Callable[[Paint], Iterable[str]] | None = None,
    ) -> None:
        """Many results, written as they come. Without a view, a person gets a table."""
        match self.shape:
            case "table" if view is not None:
                self.lines(view(self.paint))
            case "table":
                self.table(rows, columns=columns)
            case "json":
                self._json(rows)
            case "jsonl":
                for row in rows:
                    self.line(printable_json(json_text(row)))
            case "csv":
                self._csv(rows, columns)
            case _:
                raise InvalidArgument(
                    f"This command has no {self.shape} to give.",
                    help="Use --format table, json, jsonl or csv.",
                )

    def table(
        self,
        rows: Iterable[Row],
        *,
        columns: Sequence[str] | None = None,
        most: int | None = None,
    ) -> int:
        """How many rows there are, of which the first `most` are shown."""
        waiting = iter(rows)
        first = next(waiting, None)
        names = list(columns if columns is not None else first or ())
        count = 0

        def cells() -> Iterator[list[Any]]:
            nonlocal count
            for row in () if first is None else chain([first], waiting):
                count += 1
                if most is None or count <= most:
                    yield [row.get(name) for name in names]

        self.lines(draw_table(names, cells(), self.paint, self.streams.width))
        if most is not None and count > most:
            self.line(self.paint("dim", f"… {count - most:,} more (--limit, --format jsonl)"))
        return count

    def a_screen(self) -> int | None:
        """How many rows of a table a terminal shows at once, with what stands around them."""
        height = self.streams.height
        return None if height is None else max(_FEWEST, height - _AROUND)

    def arrow(self, batches: pa.RecordBatchReader) -> None:
        """An Arrow IPC stream."""
        import pyarrow as pa

        if self.streams.stdout.isatty():
            raise InvalidArgument(
                "An Arrow stream is not for a terminal.", help="Send it to a file or a program."
            )
        binary = self.streams.stdout.buffer  # type: ignore[attr-defined]
        with pa.ipc.new_stream(binary, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        binary.flush()

    def _json(self, rows: Iterable[Row]) -> None:
        before = "["
        for row in rows:
            self.raw(f"{before}\n  {printable_json(json_text(row))}")
            before = ","
        self.line("[]" if before == "[" else "\n]")

    def _csv(self, rows: Iterable[Row], columns: Sequence[str] | None) -> None:
        writer = csv.writer(self.streams.stdout, lineterminator="\n")
        names = columns
        for row in rows:
            if names is None or names is columns:
                names = list(columns if columns is not None else row)
                writer.writerow(names)
            cells = [csv_text(row.get(name)) for name in names]
            writer.writerow(cells if self.streams.width is None else map(one_line, cells))
        if names is columns and columns is not None:
            writer.writerow(columns)

    # Everything else

    def note(self, text: str) -> None:
        """Something that a person wants to know and a program does not."""
        if not self.options.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        try:
            self.streams.stderr.write(f"{text.rstrip()}\n")
            self.streams.stderr.flush()
        except OSError:  # nobody can read it, and what was done stays done
            close_stream(self.streams.stderr)

    def confirm(self, question: str, *, yes: bool) -> bool:
        """Asks before something is lost. If there is nobody to ask, `--yes` is required."""
        if yes:
            return True
        if not self.streams.stdin.isatty():
            raise InvalidArgument(question, help="Nothing was changed; add --yes to go on.")
        self.streams.stderr.write(f"{question} Go on? [y/N] ")
        self.streams.stderr.flush()
        return self.streams.stdin.readline().strip().lower() in ("y", "yes")

    def source_columns(self) -> int:
        """How many columns of a source line fit below an error, beside the line number."""
        return 100 if self.streams.width is None else max(40, min(100, self.streams.width - 8))

    def flush(self) -> None:
        self.streams.stdout.flush()
        with contextlib.suppress(OSError):
            self.streams.stderr.flush()
