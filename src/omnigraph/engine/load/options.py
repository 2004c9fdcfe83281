"""Owns what a caller can ask of a load, besides its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omnigraph.engine.load.progress import OnLoadProgress
from omnigraph.engine.session import hash_call
from omnigraph.engine.write.published import hash_key
from omnigraph.errors import InvalidArgument
from omnigraph.model.commit_text import plain_words, read_word
from omnigraph.model.options import NO_OPTIONS, CommitOptions


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """The arguments of `Graph.load`, without the source."""

    type: str | None = None
    mode: str = "append"
    branch: str = "main"
    create_branch_from: str | None = None
    mapping: Any = None
    on_error: str = "abort"
    engine: str = "auto"
    progress: OnLoadProgress | None = field(default=None, repr=False)
    commit: CommitOptions = NO_OPTIONS
    stream: tuple[str, int] | None = None
    job: str | None = None
    names: tuple[str, ...] = ()
    """The names of the files, as they were given. Other sources have no names to compare."""

    def __post_init__(self) -> None:
        plain_words(self)
        if self.job is not None and self.commit.idempotency_key is not None:
            raise InvalidArgument(
                "A job is known by its name: give `job` or `idempotency_key`, not both."
            )
        if self.stream is not None:
            stream, batch = self.stream
            read_word("stream_id", stream)
            if not isinstance(batch, int) or not 0 <= batch < 2**63:
                raise InvalidArgument(f"The batch of a stream is a number, not {batch!r}.")

    @property
    def key(self) -> str | None:
        """The hash of the key that keeps a load from being repeated. The name of a job is such a
        key too."""
        if self.job is not None:
            return hash_call(f"job/{self.job}")
        return hash_key(self.commit.idempotency_key)
