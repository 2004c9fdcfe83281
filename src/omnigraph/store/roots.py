"""Owns roots: from what a user types to where objects, tables and the writers' queue live."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from omnigraph.errors import InvalidRoot
from omnigraph.settings import Settings
from omnigraph.store.disk import DiskStore
from omnigraph.store.forks import at_own_exit
from omnigraph.store.objects import ObjectStore

_REMOTE_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")
_S3_VARIABLES = {
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_SESSION_TOKEN": "aws_session_token",
    "AWS_DEFAULT_REGION": "aws_region",
    "AWS_REGION": "aws_region",
    # Under this name an option beats every variable of the environment, in obstore and in Lance.
    "AWS_ENDPOINT_URL": "aws_endpoint_url_s3",
    "AWS_ENDPOINT_URL_S3": "aws_endpoint_url_s3",
}
_TRUE = ("1", "true", "yes")


@dataclass(frozen=True)
class Root:
    """`uri` is what is shown and what tables are opened under; `directory` is None when remote."""

    uri: str
    directory: Path | None
    options: dict[str, str] = field(default_factory=dict, repr=False)

    def objects(self, settings: Settings) -> ObjectStore:
        if self.directory is not None:
            return DiskStore(self.directory, durability=settings.durability)
        from omnigraph.store.remote import RemoteStore

        return RemoteStore(self.uri, self.options, timeout=settings.request_timeout)

    def queue_directory(self) -> Path:
        """Where writers of this machine queue: beside the graph, or in the temporary directory
        for a remote one (other machines are not in that queue; the put decides)."""
        if self.directory is not None:
            return self.directory / "__wait"
        digest = hashlib.sha256(self.uri.encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"omnigraph-{os.getuid()}" / digest


def parse_root(text: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Root:
    environment = os.environ if environment is None else environment
    text = os.fspath(text)
    if not text.strip():
        raise InvalidRoot("The root is empty.", help="Give a path, s3://bucket/prefix or file://.")
    scheme = text.split("://", 1)[0].lower() if "://" in text else ""
    if scheme in ("", "file"):
        return _local(text if not scheme else unquote(urlsplit(text).path))
    if scheme == "memory":
        return _memory(text)
    if scheme in _REMOTE_SCHEMES:
        return _remote(text, scheme, environment)
    if scheme in ("http", "https"):
        raise InvalidRoot(f"{text} is a server, not storage; the client comes later.", help="")
    raise InvalidRoot(
        f"{scheme}:// is not a kind of root.", help="Use a path, file://, s3:// or memory://."
    )


def _local(path: str) -> Root:
    directory = Path(path).expanduser().absolute()
    return Root(uri=str(directory), directory=directory)


def _memory(text: str) -> Root:
    """pylance cannot open a memory dataset again, so memory is a directory that goes at exit."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", text.split("://", 1)[1]) or "default"
    shared = Path("/dev/shm")
    parent = shared if shared.is_dir() else Path(tempfile.gettempdir())
    directory = parent / f"omnigraph-{os.getuid()}-{os.getpid()}"
    if not directory.exists():
        directory.mkdir(mode=0o700)
        at_own_exit(shutil.rmtree, directory, ignore_errors=True)
    return Root(uri=str(directory / name), directory=directory / name)


def _remote(text: str, scheme: str, environment: Mapping[str, str]) -> Root:
    parts = urlsplit(text)
    if not parts.netloc:
        raise InvalidRoot(f"{text} names no bucket.", help="Write s3://bucket/prefix.")
    uri = f"{'s3' if scheme == 's3a' else scheme}://{parts.netloc}/{parts.path.strip('/')}"
    uri = uri.rstrip("/")
    if scheme not in ("s3", "s3a"):
        return Root(uri=uri, directory=None)
    # Resolved once and given to both clients, so that they can never talk to different places.
    options = {"aws_region": "us-east-1"} | {
        option: environment[variable]
        for variable, option in _S3_VARIABLES.items()
        if environment.get(variable)
    }
    if environment.get("AWS_ALLOW_HTTP", "").lower() in _TRUE:
        options["allow_http"] = "true"
    path_style = environment.get("AWS_S3_FORCE_PATH_STYLE", "true").lower() in _TRUE
    options["aws_virtual_hosted_style_request"] = "false" if path_style else "true"
    endpoint = options.get("aws_endpoint_url_s3", "")
    if endpoint.startswith("http://") and "allow_http" not in options:
        raise InvalidRoot(
            f"The endpoint {endpoint} is plain http.",
            help="Set AWS_ALLOW_HTTP=true if that is what you want.",
        )
    return Root(uri=uri, directory=None, options=options)
