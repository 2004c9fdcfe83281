"""Owns who is calling: how a credential becomes a caller, and the simplest way to do that."""

from __future__ import annotations

import getpass
from typing import Protocol

from omnigraph.model.caller import Caller


class Credentials(Protocol):
    def caller_of(self, header: str | None) -> Caller:
        """Whom the `Authorization` header of a request names; raises `Unauthenticated`."""


class LocalUser:
    """No tokens, and nobody but this machine can reach the server: its user may do everything."""

    def __init__(self) -> None:
        self._user = Caller(_user_name(), roles=frozenset({"admin"}))

    def caller_of(self, header: str | None) -> Caller:
        return self._user


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an id without a name
        return "local"
