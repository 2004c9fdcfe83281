"""Owns the log of the server: one line for each request, and for what an operator should know. No
line holds a secret, the text of a query (unless that is asked for) or a parameter."""

from __future__ import annotations

import hashlib
import logging
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from omnigraph.errors import InvalidArgument
from omnigraph.model.permission import AuditEvent

_LOG = logging.getLogger("omnigraph.access")
_AUDIT = logging.getLogger("omnigraph.audit")


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """`slow_query` is in seconds; 0 is never. With `query_text` slow queries are told whole. The
    `audit`, a line for each write and denial, goes to the log, to a file, or is "off"."""

    format: Literal["json", "text"] = "json"
    slow_query: float = 1.0
    query_text: bool = False
    audit: str = "log"

    def __post_init__(self) -> None:
        if self.format not in ("json", "text"):
            raise InvalidArgument(f"The format of the log is json or text, not {self.format!r}.")
        if not 0 <= self.slow_query < math.inf:
            raise InvalidArgument(f"slow_query is a number of seconds, not {self.slow_query:g}.")


class JsonLines(logging.Formatter):
    """A line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        row: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        row |= getattr(record, "told", {})
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(row, enc_hook=str).decode()


class PlainLines(logging.Formatter):
    """A line for a person."""

    def format(self, record: logging.LogRecord) -> str:
        told = getattr(record, "told", {})
        words = [f"{name}={value}" for name, value in told.items() if value is not None]
        line = " ".join([record.levelname.lower(), record.getMessage(), *words])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def begin_logging(config: LogConfig) -> None:
    """All lines of the process go to the standard error, in one form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if config.format == "json" else PlainLines())
    for name in ("omnigraph", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def log_request(**told: Any) -> None:
    """Made by hand: each request has one, and who called is always here."""
    if _LOG.isEnabledFor(logging.INFO):
        record = logging.LogRecord(_LOG.name, logging.INFO, "", 0, "request", None, None)
        record.told = told
        _LOG.callHandlers(record)


def log_audit(event: AuditEvent, more: Mapping[str, object]) -> None:
    _AUDIT.info(
        "audit", extra={"told": {**event.to_dict(), **more, "event": f"audit {event.event}"}}
    )


def log_slow_query(text: str, config: LogConfig, **told: Any) -> None:
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    shown = {"query": text} if config.query_text else {}
    _LOG.warning("slow query", extra={"told": {**told, "query_digest": digest, **shown}})
