"""The program run in this process, with streams that are caught and a clock that is told."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.cli.output import Streams
from omnigraph.cli.run import run
from omnigraph.runtime import SystemRuntime

_BEGAN = 1_767_268_800_000_000  # 2026-01-01 12:00 UTC
_MINUTE = 60_000_000


class ToldClock(SystemRuntime):
    """Every command takes place one minute after the one before; ids are the machine's own."""

    def __init__(self) -> None:
        super().__init__()
        self.minute = 0

    def now(self) -> int:
        return _BEGAN + self.minute * _MINUTE

    def next_minute(self) -> None:
        self.minute += 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class BinaryOut(io.TextIOWrapper):
    """A stdout that takes bytes as well, and may be a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def content(self) -> bytes:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue()


@dataclass
class Ran:
    code: int
    out: str
    err: str
    bytes: bytes = b""


@dataclass
class Program:
    """Runs commands one after the other. `width` makes stdout a terminal."""

    clock: SystemRuntime = field(default_factory=ToldClock)
    environment: dict[str, str] = field(default_factory=dict)
    width: int | None = None

    def __call__(
        self,
        arguments: Sequence[str],
        stdin: str | io.StringIO = "",
        *,
        terminal: bool = False,
        **more: str,
    ) -> Ran:
        """`terminal` makes stderr one too."""
        if isinstance(self.clock, ToldClock):
            self.clock.next_minute()
        given: Mapping[str, str] = {"NO_COLOR": "1"} | self.environment | more
        out = BinaryOut(terminal=self.width is not None)
        err = Terminal() if terminal else io.StringIO()
        source = io.StringIO(stdin) if isinstance(stdin, str) else stdin
        streams = Streams(source, out, err, self.width, self.width and 24)
        code = run(arguments, streams=streams, environment=given, runtime=self.clock)
        content = out.content()
        return Ran(code, content.decode(errors="replace"), err.getvalue(), content)


_CURSOR = re.compile(r"omnigraph-cursor-\d+\.[\w=+/-]+")
_ULID = re.compile(r"\b0[1-9A-HJ-NP-TV-Z][0-9A-HJKMNP-TV-Z]{24}\b")


_TOKEN = re.compile(r"\bogt_([a-z0-9]{12})_[\w-]{43}")
_SIZE = re.compile(r"\b\d+\.\d KB")


class Names:
    """Stand-ins of the same width for ids, which differ from run to run; sizes that ids are part
    of, and differ with them, are not told."""

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}

    def hide(self, text: str) -> str:
        text = _CURSOR.sub(lambda match: self._stand_in(match[0], "cursor-{}"), text)
        text = _SIZE.sub("n.n KB", text)
        for token in _TOKEN.finditer(text):
            self._stand_in(token[0], "token-{:02}")
            self._stand_in(token[1], "known-as-{:02}")
        for real, stand_in in self._stand_ins.items():
            text = text.replace(real, stand_in) if stand_in[:5] in ("token", "known") else text
        return _ULID.sub(lambda match: self._stand_in(match[0], "id-{:02}-" + "x" * 20), text)

    def reveal(self, text: str) -> str:
        for real, stand_in in self._stand_ins.items():
            text = text.replace(stand_in, real)
        return text

    def _stand_in(self, real: str, form: str) -> str:
        return self._stand_ins.setdefault(real, form.format(len(self._stand_ins) + 1))
