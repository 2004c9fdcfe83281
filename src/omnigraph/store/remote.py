"""Owns the object store behind obstore (S3 and the like): typed answers, with ambiguity
reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store, from_url

from omnigraph.errors import GraphNotFound, PermissionDenied, Unavailable
from omnigraph.store.forks import use_engines
from omnigraph.store.objects import MOST_RETRIES, Absent, Ambiguous, StoredFile

_PART = 8 << 20
_ROLE_SERVICES = ("169.254.169.254", "169.254.170.2", "169.254.170.23")
"""The address from which AWS machines get the keys of their role. obstore asks there if no others
are given."""


class RemoteStore:
    """Reads and plain puts are retried by obstore, for as long as a request may take. A conditional
    put is not: obstore's own retry would report "exists" for our object when only the first answer
    was lost (hazard 10)."""

    def __init__(self, url: str, options: dict[str, str], *, timeout: float) -> None:
        use_engines()
        client: dict[str, Any] = {
            "timeout": timedelta(seconds=timeout),
            "connect_timeout": timedelta(seconds=min(5.0, timeout)),
        }
        if options.get("allow_http") == "true":
            client["allow_http"] = True
        config = {key: value for key, value in options.items() if key != "allow_http"}
        parts = urlsplit(url)

        def connect(retries: int) -> Any:
            retry = {
                "max_retries": retries,
                "retry_timeout": timedelta(seconds=timeout),
                "backoff": {"max_backoff": timedelta(seconds=2)},
            }
            if parts.scheme == "s3":
                # `from_url` takes no option that names an endpoint of S3 alone.
                return S3Store(
                    parts.netloc,
                    prefix=parts.path.strip("/") or None,
                    config=config,
                    client_options=client,
                    retry_config=retry,
                )
            return from_url(url, config=config, client_options=client, retry_config=retry)

        self._url = url
        try:
            self._store = connect(MOST_RETRIES)
            self._once = connect(0)
        except BaseError as error:  # an account or a key that is missing from the address
            raise self._without_credentials() from error

    def get(self, key: str) -> bytes:
        with self._explained(key):
            return bytes(obstore.get(self._store, key).bytes())

    def exists(self, key: str) -> bool:
        try:
            with self._explained(key):
                obstore.head(self._store, key)
        except Absent:
            return False
        return True

    def put_if_absent(self, key: str, data: bytes, *, after: Sequence[Path] = ()) -> bool:
        try:
            obstore.put(self._once, key, data, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            return False
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._denied(key, error) from error
        except FileNotFoundError:
            raise GraphNotFound(f"There is no bucket for {self._url}.") from None
        except BaseError as error:
            raise Ambiguous(f"{self._url}/{key}: {_first_line(error)}") from error
        return True

    def put(self, key: str, data: bytes) -> None:
        with self._explained(key):
            obstore.put(self._store, key, data, use_multipart=False)

    def get_parts(self, key: str) -> Iterator[bytes]:
        with self._explained(key):
            for part in obstore.get(self._store, key).stream(min_chunk_size=_PART):
                yield bytes(part)

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        with self._explained(key):
            obstore.put(self._store, key, parts, use_multipart=True, chunk_size=_PART)

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        keys: list[str] = []
        with self._explained(prefix):
            # The first chunk needs only the first page, which holds up to 1,000 keys.
            chunk = 1000 if limit is None else limit
            for page in obstore.list(self._store, prefix or None, chunk_size=chunk):
                keys += [entry["path"] for entry in page]
                if limit is not None and len(keys) >= limit:
                    break
        return sorted(keys)[:limit]

    def files(self, prefix: str) -> Sequence[StoredFile]:
        found: list[StoredFile] = []
        with self._explained(prefix):
            for page in obstore.list(self._store, prefix or None, chunk_size=1000):
                for entry in page:
                    modified = int(entry["last_modified"].timestamp() * 1_000_000)
                    found.append(StoredFile(entry["path"], entry["size"], modified))
        return sorted(found, key=lambda file: file.key)

    def groups(self, prefix: str) -> Sequence[str]:
        with self._explained(prefix):
            found = obstore.list_with_delimiter(self._store, prefix)["common_prefixes"]
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in found)

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        return None

    def delete(self, key: str) -> None:
        with contextlib.suppress(Absent), self._explained(key):
            obstore.delete(self._store, key)

    @contextlib.contextmanager
    def _explained(self, key: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise GraphNotFound(f"There is no bucket for {self._url}.") from None
            raise Absent(key) from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._denied(key, error) from error
        except BaseError as error:
            if any(place in str(error) for place in _ROLE_SERVICES):
                raise self._without_credentials() from error
            if "NoSuchBucket" in str(error) or "404 Not Found" in str(error):
                raise GraphNotFound(f"There is no bucket for {self._url}.") from None
            if "403 Forbidden" in str(error):  # a refused LIST has no type of its own
                raise self._denied(key, error) from error
            raise Unavailable(
                f"The store did not answer for {self._url}/{key}: {_first_line(error)}"
            ) from error

    def _without_credentials(self) -> PermissionDenied:
        return PermissionDenied(
            f"There are no credentials for {self._url}.",
            help=f"Set {self._variables}, or run where a role gives them.",
        )

    @property
    def _variables(self) -> str:
        """The variables in which this kind of store looks for credentials."""
        match urlsplit(self._url).scheme:
            case "gs":
                return "GOOGLE_APPLICATION_CREDENTIALS"
            case "az" | "abfs" | "abfss":
                return "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
            case _:
                return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

    def _denied(self, key: str, error: Exception) -> PermissionDenied:
        return PermissionDenied(
            f"The store refused access to {self._url}/{key}.",
            help=f"Check {self._variables}, and the policy of the bucket.",
        )


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
