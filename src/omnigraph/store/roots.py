"""Owns roots: it turns what a user types into the locations of objects, tables and the writers'
queue."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import stat
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from omnigraph.errors import InvalidRoot
from omnigraph.settings import Settings
from omnigraph.store.disk import DiskStore
from omnigraph.store.forks import at_own_exit
from omnigraph.store.objects import MOST_RETRIES, ObjectStore

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
_LANCE_ROUNDS = 16
_TRUE = ("1", "true", "yes")
_PLAIN = string.ascii_letters + string.digits + "-"


@dataclass(frozen=True)
class Root:
    """`uri` is shown to users and used to open tables. `directory` is None for a remote root."""

    uri: str
    directory: Path | None
    options: dict[str, str] = field(default_factory=dict, repr=False)

    def objects(self, settings: Settings) -> ObjectStore:
        if self.directory is not None:
            return DiskStore(self.directory, durability=settings.durability)
        from omnigraph.store.remote import RemoteStore

        return RemoteStore(self.uri, self.options, timeout=settings.request_timeout)

    def lance_options(self, timeout: float) -> dict[str, str] | None:
        """For Lance, which gives up after three attempts by itself. It repeats a failed request
        about sixteen times (measured), so each time gets its part."""
        if self.directory is not None:
            return None
        seconds = str(max(1, round(timeout / _LANCE_ROUNDS)))
        return self.options | {
            "client_max_retries": str(MOST_RETRIES),
            "client_retry_timeout": seconds,
        }

    def queue_directory(self) -> Path:
        """Where writers of this machine queue: beside the graph, or in the temporary directory
        for a remote one (other machines are not in that queue; the put decides)."""
        if self.directory is not None:
            return self.directory / "__wait"
        import tempfile

        digest = hashlib.sha256(self.uri.encode()).hexdigest()[:16]
        return _own_directory(Path(tempfile.gettempdir()) / f"omnigraph-{os.getuid()}") / digest


def parse_root(text: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Root:
    environment = os.environ if environment is None else environment
    text = os.fspath(text)
    if not text.strip():
        raise InvalidRoot("The root is empty.", help="Give a path, s3://bucket/prefix or file://.")
    scheme = text.split("://", 1)[0].lower() if "://" in text else ""
    if scheme in ("", "file"):
        return _local(_file_path(text) if scheme else text)
    if scheme == "memory":
        return _memory(text)
    if scheme in _REMOTE_SCHEMES:
        return _remote(text, scheme, environment)
    if scheme in ("http", "https"):
        raise InvalidRoot(
            f"{_shown(text)} is a graph on a server, and storage is needed here.",
            help="Give a path or s3://bucket/prefix.",
        )
    raise InvalidRoot(
        f"{scheme}:// is not a kind of root.", help="Use a path, file://, s3:// or memory://."
    )


def _local(path: str) -> Root:
    try:
        directory = Path(path).expanduser().absolute()
        os.fsencode(directory)
    except RuntimeError:
        raise InvalidRoot(
            f"{path}: there is no user of this name.",
            help="Write ./ before a name that begins with ~.",
        ) from None
    except FileNotFoundError:
        raise InvalidRoot(
            "The working directory is gone.", help="Go to another one, or give a whole path."
        ) from None
    except UnicodeEncodeError:
        raise InvalidRoot(f"The root {path!r} is not a text in UTF-8.") from None
    if not _is_text(str(directory)) or "\0" in path:
        raise InvalidRoot(f"The root {path!r} is not a text in UTF-8.")
    return Root(uri=str(directory), directory=directory)


def _is_text(path: str) -> bool:
    """Lance and graph versions store paths as UTF-8 only."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _file_path(text: str) -> str:
    """A URL has its own rules for some characters, so two URLs could be one place."""
    parts = urlsplit(text)
    if parts.query or parts.fragment or "#" in text or "?" in text:
        raise InvalidRoot(
            f"{_shown(text)} goes on with ? or #.", help="Write the path, without file://."
        )
    if parts.netloc not in ("", "localhost"):
        raise InvalidRoot(f"{_shown(text)} names a machine.", help="Write file:///the/path.")
    path = unquote(parts.path)
    _refuse_dots(text, path)
    return path


def _refuse_dots(text: str, path: str) -> None:
    if {".", ".."} & set(path.split("/")):
        raise InvalidRoot(
            f"{_shown(text)} holds . or .. as a name.", help="Write where it leads instead."
        )


def _shown(text: str) -> str:
    """An address without secrets."""
    start, _, rest = re.split(r"[?#]", text, maxsplit=1)[0].partition("://")
    place, slash, path = rest.partition("/")
    return f"{start}://{place.rsplit('@', 1)[-1]}{slash}{path}"


def _own_directory(wanted: Path) -> Path:
    """A directory that only this user can use. In a world-writable place, somebody else may have
    created that name, or a link of that name; then another name is used."""

    import tempfile

    try:
        with contextlib.suppress(FileExistsError):
            wanted.mkdir(mode=0o700)
        held = wanted.lstat()
        if stat.S_ISDIR(held.st_mode) and held.st_uid == os.getuid():
            if held.st_mode & 0o077:
                wanted.chmod(0o700)
            return wanted
        return _of_this_process(tempfile.gettempdir(), os.getpid())
    except OSError:
        return Path(os.devnull) / wanted.name  # nothing can exist there, so nobody queues


@functools.cache
def _of_this_process(parent: str, process: int) -> Path:
    """A new directory with an unpredictable name, which is deleted at exit."""

    import tempfile

    directory = tempfile.mkdtemp(prefix=f"omnigraph-{os.getuid()}-{process}-", dir=parent)
    at_own_exit(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _memory(text: str) -> Root:
    """pylance cannot open a memory dataset again, so memory is a directory that is deleted at
    exit."""

    import tempfile

    given = text.split("://", 1)[1].encode(errors="surrogatepass")
    name = "".join(chr(byte) if chr(byte) in _PLAIN else f"_{byte:02x}" for byte in given)
    name = name or "default"
    shared = Path("/dev/shm")
    parent = shared if shared.is_dir() else Path(tempfile.gettempdir())
    directory = _of_this_process(str(parent), os.getpid())
    return Root(uri=str(directory / name), directory=directory / name)


def _remote(text: str, scheme: str, environment: Mapping[str, str]) -> Root:
    if ":" in text.split("://", 1)[1].rpartition("@")[0].split("/", 1)[0]:
        raise InvalidRoot(
            f"{_shown(text)} was given with a password.",
            help="Passwords and keys come from the environment: AWS_ACCESS_KEY_ID and the like.",
        )
    if strange := sorted(set("#?%\\").intersection(text)):
        raise InvalidRoot(
            f"{_shown(text)}: {' '.join(strange)} means something else in an address.",
            help="Choose another prefix.",
        )
    parts = urlsplit(text)
    if not parts.netloc:
        raise InvalidRoot(f"{text} names no bucket.", help="Write s3://bucket/prefix.")
    _refuse_dots(text, parts.path)
    if not _is_text(text) or any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise InvalidRoot(f"The root {text!r} is not a text in UTF-8.")
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
            f"The endpoint {_shown(endpoint)} is plain http.",
            help="Set AWS_ALLOW_HTTP=true if that is what you want.",
        )
    return Root(uri=uri, directory=None, options=options)
