"""Owns the tokens of a user: where each comes from, and that none is shown, pickled or sent to
another server than its own."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from omnigraph.errors import InvalidArgument, PermissionDenied

VARIABLE = "OMNIGRAPH_TOKEN"
PLACE = "OMNIGRAPH_CREDENTIALS"
_VISIBLE = re.compile(r"[\x21-\x7e]{1,8192}")


class BearerToken:
    """A secret. Only `header` tells it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if _VISIBLE.fullmatch(text) is None:
            raise InvalidArgument(
                "The token is no token: it has visible characters of ASCII alone.",
                help="Give it as `omnigraph token create` printed it, without a line break.",
            )
        self._text = text

    def header(self) -> str:
        return f"Bearer {self._text}"

    def hidden_in(self, text: str) -> str:
        """A text of the other side, which may repeat what it was sent."""
        return text.replace(self._text, "***")

    def __repr__(self) -> str:
        return "BearerToken(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A token is not pickled: give it to the other process by its environment.")


def find_token(
    origin: str, given: str | None, environment: Mapping[str, str] | None = None
) -> BearerToken | None:
    """The one that was given, else that of the environment, else the one kept for this server."""
    environment = os.environ if environment is None else environment
    if given is not None:
        return BearerToken(given)
    if text := environment.get(VARIABLE):
        return BearerToken(text)
    kept = CredentialsFile(environment).token_of(origin)
    return None if kept is None else BearerToken(kept)


class CredentialsFile:
    """Tokens by server, in a file that only its user can read."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        named = environment.get(PLACE)
        home = environment.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
        self.path = Path(named) if named else Path(home) / "omnigraph" / "credentials.json"

    def token_of(self, origin: str) -> str | None:
        return self._read().get(origin)

    def keep(self, origin: str, token: str) -> None:
        self._write(self._read() | {origin: token})

    def forget(self, origin: str) -> bool:
        """Whether there was one."""
        held = self._read()
        if origin not in held:
            return False
        self._write({name: token for name, token in held.items() if name != origin})
        return True

    def origins(self) -> list[str]:
        return sorted(self._read())

    def _read(self) -> dict[str, str]:
        try:
            with self.path.open(encoding="utf-8") as file:
                mode = os.fstat(file.fileno()).st_mode & 0o777
                if mode & 0o077:
                    raise PermissionDenied(
                        f"Others can read the tokens in {self.path} (mode {mode:o}).",
                        help=f"chmod 600 {self.path}, and renew the tokens that were in it.",
                    )
                held = json.load(file)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise PermissionDenied(
                f"{self.path} cannot be read: {error.strerror}.", help=""
            ) from None
        except ValueError:
            held = None
        if not isinstance(held, dict) or not all(isinstance(one, str) for one in held.values()):
            raise InvalidArgument(
                f"{self.path} is no file of tokens.", help="Delete it, and log in again."
            )
        return held

    def _write(self, held: dict[str, str]) -> None:
        """A file that is never half written, and never readable by others."""
        folder = self.path.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".credentials.", dir=folder)  # mode 0600
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(held, file, indent=2)
                    file.write("\n")
                Path(name).replace(self.path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise PermissionDenied(
                f"{self.path} cannot be written: {error.strerror}.", help=""
            ) from None
