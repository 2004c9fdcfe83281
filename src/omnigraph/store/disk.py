"""Owns the object store on a local disk: atomic creation by hard link, durable by fsync."""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from omnigraph.errors import (
    Corrupt,
    DiskFull,
    OmnigraphError,
    PermissionDenied,
    StoreFailure,
    UnsafeStore,
)
from omnigraph.store.objects import OF_THE_SYSTEM, Absent, Gone, StoredFile, Unsettled, purpose_of
from omnigraph.store.oddities import odd_object

_PART = 8 << 20
_TEMPORARY = ".tmp-"
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class _Syncers:
    """Threads that sync in parallel. A forked child has none of its parent's and starts its own."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def pool(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(4, thread_name_prefix="omnigraph-sync")
            return self._pool


_SYNCERS = _Syncers()


class DiskStore:
    """A directory. obstore is not used here because it never syncs: after a power cut the commit
    point would be an empty file whose number is taken, and the branch could not continue."""

    def __init__(self, root: Path, *, durability: Literal["full", "relaxed"]) -> None:
        self._root = root
        self._below = f"{root}{os.sep}"
        self._acknowledge_synced = durability == "full"
        self._known_directories: set[Path] = set()
        self._inside: set[str] = set()

    def get(self, key: str) -> bytes:
        """Every read of a head ends here, finding that there is no newer one, so it uses plain
        system calls."""
        with self._open(key) as file:
            return file.read()

    @contextlib.contextmanager
    def _open(self, key: str) -> Iterator[BinaryIO]:
        """Opens regular files only: reading a pipe might never end."""
        self._require_inside(key)
        try:
            held = os.open(self._below + key, _READ)
        except (FileNotFoundError, NotADirectoryError):
            raise Absent(key) from None
        except OSError as error:
            raise explain_os_error(error, key) from error
        with explained_files(key), os.fdopen(held, "rb") as file:
            if not stat.S_ISREG(mode := os.fstat(held).st_mode):
                raise odd_object(key, mode)
            yield file

    def _require_inside(self, key: str) -> None:
        """No folder on the way to a key may be a link that leads out of the root (decision 36).
        Each folder is checked once, because the check costs more than the read."""
        folder = key.rpartition("/")[0]
        if folder not in self._inside:
            require_inside(self._root, folder)
            self._inside.add(folder)

    def exists(self, key: str) -> bool:
        with explained_files(key):
            return (self._root / key).exists()

    def put_if_absent(self, key: str, data: bytes, *, after: Sequence[Path] = ()) -> bool:
        import secrets

        path = self._root / key
        self._require_inside(key)
        with explained_files(key):
            self._ensure_directory(path.parent)
            temporary = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
            try:
                _write(temporary, data)
                # One batch, so that the journal of the file system is written once for all.
                try:
                    sync_files([*after, temporary], self._entries_to_sync(after))
                except StoreFailure as error:
                    if isinstance(error.__cause__, FileNotFoundError):
                        raise Gone(str(error.__cause__)) from error
                    raise
                self._known_directories.update(needed.parent for needed in after)
                try:
                    os.link(temporary, path)
                except FileExistsError:
                    return False
                except OSError as error:
                    if error.errno in _NO_LINKS:
                        raise _without_links(path) from error
                    raise
            finally:
                with contextlib.suppress(OSError):  # if it is left behind, it is no object
                    temporary.unlink(missing_ok=True)
            # Relaxed leaves out the entry of a commit point alone, never what a version needs.
            if self._acknowledge_synced or purpose_of(key) != "version":
                _settle(path)
            return True

    def put(self, key: str, data: bytes) -> None:
        import secrets

        path = self._root / key
        self._require_inside(key)
        with explained_files(key):
            self._ensure_directory(path.parent)
            temporary = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
            _write(temporary, data)
            _sync(temporary)  # else a power cut leaves nothing of what was there, nor of this
            temporary.replace(path)
            _settle(path)

    def get_parts(self, key: str) -> Iterator[bytes]:
        with self._open(key) as file:
            while part := file.read(_PART):
                yield part

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        import secrets

        path = self._root / key
        self._require_inside(key)
        with explained_files(key):
            self._ensure_directory(path.parent)
            temporary = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
            try:
                with temporary.open("xb") as file:
                    for part in parts:
                        file.write(part)
                _sync(temporary)
                temporary.replace(path)
                _settle(path)
            finally:
                temporary.unlink(missing_ok=True)

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        base = self._root / prefix
        self._require_inside(prefix)
        keys: list[str] = []
        with explained_files(prefix):
            for directory, _, names in os.walk(base, onerror=_refuse_unreadable):
                below = Path(directory).relative_to(self._root)
                keys += [str(below / name) for name in names if not name.startswith(_TEMPORARY)]
        return sorted(keys) if limit is None else heapq.nsmallest(limit, keys)

    def files(self, prefix: str) -> Sequence[StoredFile]:
        """Links and pipes are not objects, wherever they lead."""
        found: list[StoredFile] = []
        self._require_inside(prefix)
        with explained_files(prefix):
            for directory, _, names in os.walk(self._root / prefix, onerror=_refuse_unreadable):
                below = Path(directory).relative_to(self._root)
                for name in names:
                    try:
                        held = (self._root / below / name).lstat()
                    except FileNotFoundError:  # gone since it was listed
                        continue
                    if not stat.S_ISREG(held.st_mode):
                        continue
                    key = (below / name).as_posix()
                    found.append(StoredFile(key, held.st_size, held.st_mtime_ns // 1000))
        return sorted(found, key=lambda file: file.key)

    def groups(self, prefix: str) -> Sequence[str]:
        """A directory into which nobody has put anything yet does not count."""
        self._require_inside(prefix)
        with explained_files(prefix):
            try:
                entries = [e for e in os.scandir(self._root / prefix) if e.is_dir()]
            except (FileNotFoundError, NotADirectoryError):
                return []
            return sorted(entry.name for entry in entries if _holds_anything(entry.path))

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        return [self._is_there(key) for key in keys]

    def _is_there(self, key: str) -> bool:
        """Every read of a head ends here too, so it uses no paths."""
        try:
            os.stat(f"{self._below}{key}")  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise explain_os_error(error, key) from error
        return True

    def delete(self, key: str) -> None:
        self._require_inside(key)
        with explained_files(key):
            (self._root / key).unlink(missing_ok=True)

    def _ensure_directory(self, directory: Path) -> None:
        if directory in self._known_directories:
            return
        holders = directories_above([directory], self._root)
        parent = directory
        while not parent.is_dir():
            holders.add(parent.parent)
            parent = parent.parent
        directory.mkdir(parents=True, exist_ok=True)
        # Those that were there too: who made them may not have come to sync them yet.
        for holder in holders:
            _sync(holder)
        with contextlib.suppress(PermissionError):  # then the root was there before any of us
            _sync(self._root.parent)
        self._known_directories.add(directory)

    def _entries_to_sync(self, paths: Sequence[Path]) -> set[Path]:
        """The directories of these files and, the first time, all above them, because Lance creates
        some."""
        holders = {path.parent for path in paths}
        if unknown := holders - self._known_directories:
            holders |= directories_above(unknown, self._root)
        return holders


def _without_links(path: Path) -> UnsafeStore:
    return UnsafeStore(
        f"The file system of {path} makes no hard links, and a commit is made by one.",
        help="Put the graph on a file system that has them, or into an object store.",
    )


def _holds_anything(directory: str) -> bool:
    with os.scandir(directory) as entries:
        return any(
            not entry.name.startswith(_TEMPORARY) and entry.name not in OF_THE_SYSTEM
            for entry in entries
        )


def require_inside(root: Path, place: str) -> None:
    """Raises if a place below a root is, by a link, one outside of it."""
    real, base = os.path.realpath(root / place), os.path.realpath(root)
    if real != base and not real.startswith(base.rstrip(os.sep) + os.sep):
        raise Corrupt(
            f"{place} leads out of the graph, to {real}: it is a link, or lies below one.",
            help="Put what it leads to in its place, if that is what you want.",
        )


def files_below(directory: Path) -> list[Path]:
    """Every file in a directory and below it, or none if it does not exist."""
    return [path for path in directory.rglob("*") if path.is_file()]


def directories_above(paths: Iterable[Path], root: Path) -> set[Path]:
    """All directories that hold an entry on the way from the root to one of these paths."""
    return {above for path in paths for above in path.parents if above.is_relative_to(root)}


def sync_files(paths: Sequence[Path], directories: Iterable[Path]) -> None:
    """Makes files, and the entries of directories, durable. In parallel, because a file system can
    then write its journal once."""

    from concurrent.futures import wait

    with explained_files("table files"):
        first, *others = [*paths, *directories]
        running = [_SYNCERS.pool.submit(_sync, path) for path in others]
        try:
            _sync(first)
        finally:
            wait(running)
        for done in running:
            done.result()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _settle(path: Path) -> None:
    """The last step of a put. If it fails, a second attempt would succeed and prove nothing,
    because by then the file system has forgotten what it could not write."""
    try:
        _sync(path.parent)
    except OSError as error:
        raise Unsettled(
            f"{path} was written, but its entry could not be synced: {error}"
        ) from error


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _refuse_unreadable(error: OSError) -> None:
    """A directory that cannot be listed is not empty; a missing one is."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _place(where: object) -> object:
    """A file that was about to get its name is reported under that name."""
    path = Path(str(where))
    return path.parent if path.name.startswith(_TEMPORARY) else where


@contextlib.contextmanager
def explained_files(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain_os_error(error, what) from error


def explain_os_error(error: OSError, what: str) -> OmnigraphError:
    where = _place(error.filename or what)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"No space is left on the device of {where}.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return PermissionDenied(f"No permission for {where} ({os.strerror(error.errno)}).")
    if error.errno == errno.ELOOP:  # `_READ` follows none
        return Corrupt(f"{where} is a link, which no object of a graph is.")
    return StoreFailure(f"The disk refused {where}: {error.strerror or error}.")
