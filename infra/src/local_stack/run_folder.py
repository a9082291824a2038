"""The run folder: all that one stack writes, in one place that `clean` can remove."""

import base64
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fetching.errors import Failure

SOCKET_PATH_CHARACTERS_MAX = 100
"""The kernel takes 107 on Linux and 103 on macOS; supervisord adds a suffix while it binds."""

PASSWORD_BYTES = 24
PERSONAL_DATA_KEY = "personal-data-key"
PERSONAL_DATA_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Names the files of a run folder; none of them need exist."""

    path: Path

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def addresses(self) -> Path:
        return self.path / "addresses.json"

    @property
    def secrets(self) -> Path:
        return self.path / "secrets.json"

    @property
    def authority(self) -> Path:
        """The certificate, in PEM, by which the servers of a stack with TLS are verified."""
        return self.path / "authority.pem"

    @property
    def way_file(self) -> Path:
        return self.path / "way"

    @property
    def way(self) -> str | None:
        """How the stack runs that has its files here; None if there is none."""
        if self.way_file.exists():
            return self.way_file.read_text().strip()
        # Folders of before this file; in containers, the data are not in the folder.
        return "processes" if (self / "postgres").exists() else None

    @property
    def supervisor_config(self) -> Path:
        return self.path / "supervisord.conf"

    @property
    def supervisor_socket(self) -> Path:
        """In the run folder, or in a short folder of this user if the path would be too long."""
        socket = self.path / "supervisor.sock"
        if len(os.fsencode(socket)) <= SOCKET_PATH_CHARACTERS_MAX:
            return socket
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"hometown-{os.getuid()}-{digest}" / "s"

    def log_of(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    def create(self) -> None:
        """Make the folder and what every process expects in it.

        Raises:
            Failure: the folder cannot be written.
        """
        try:
            (self.path / "logs").mkdir(parents=True, exist_ok=True)
            self.supervisor_socket.parent.mkdir(mode=0o700, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise unwritable(self.path, error) from error

    def claim(self, way: str) -> None:
        """Make the folder the one of the stack that runs this way; it must exist.

        Raises:
            Failure: it is the folder of a stack that runs another way.
        """
        self.demand(way)
        write_atomically(self.way_file, f"{way}\n")

    def demand(self, way: str) -> None:
        """Raises Failure if this is the folder of a stack that runs another way.

        Its passwords and keys open that stack's data, and nothing else does.
        """
        if self.way not in (None, way):
            raise Failure(
                f"{self.path} has the files of a stack in={self.way}: "
                f"set HOMETOWN_RUN_DIR to another folder, or `make clean in={self.way}`"
            )

    @property
    def unfinished_file(self) -> Path:
        return self.path / "unfinished"

    @property
    def repair(self) -> str | None:
        """What has to be done before anything is started here, as an advice."""
        try:
            return self.unfinished_file.read_text().strip()
        except FileNotFoundError:
            return None

    def begin(self, repair: str) -> None:
        """From now on `up` refuses: what begins may be interrupted, and only this repairs it."""
        write_atomically(self.unfinished_file, f"{repair}\n")

    def finish(self) -> None:
        """What began is finished; `up` starts this stack again."""
        self.unfinished_file.unlink()

    def demand_finished(self, *repairs: str) -> None:
        """Raises Failure if what was interrupted here needs another repair than one of these."""
        if self.repair is not None and self.repair not in repairs:
            raise Failure(
                f"a verb was interrupted here, and the hours would be wrong: {self.repair}"
            )

    def remove(self) -> None:
        """Remove all of it, except the run folders of other stacks in it.

        Raises:
            Failure: something in it cannot be removed.
        """
        if self.supervisor_socket.parent != self.path:
            shutil.rmtree(self.supervisor_socket.parent, ignore_errors=True)
        try:
            for entry in self.path.iterdir():
                if RunFolder(entry).way_file.exists():
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
            if not any(self.path.iterdir()):
                self.path.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            raise Failure(f"cannot remove {self.path} ({error.strerror}): do it by hand") from error

    def open_lock(self) -> IO[str]:
        try:
            return (self.path / "lock").open("w")
        except OSError as error:
            raise unwritable(self.path, error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One verb at a time changes what runs here.

        Raises:
            Failure: another one is at work.
        """
        with self.open_lock() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise Failure(
                    f"another command is starting or stopping {self.path}: wait until it has ended"
                ) from error
            yield


def unwritable(folder: Path, error: OSError) -> Failure:
    return Failure(
        f"cannot write to the run folder {folder} ({error.strerror}): "
        "make it writable or set HOMETOWN_RUN_DIR to another folder"
    )


def write_atomically(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Readers see the old text or the new one, never a part, also after a power cut."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
    os.replace(file.name, path)


def write_json(path: Path, value: Any, *, mode: int = 0o644) -> None:
    write_atomically(path, json.dumps(value, indent=2) + "\n", mode=mode)


def read_json(path: Path) -> Any:
    """The value, or None if there is no such file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def personal_data_key(folder: RunFolder) -> str:
    """The key of users-svc, 32 random bytes in base64; made once per run folder and kept."""
    known: dict[str, str] = read_json(folder.secrets) or {}
    if PERSONAL_DATA_KEY not in known:
        key = base64.b64encode(secrets.token_bytes(PERSONAL_DATA_KEY_BYTES)).decode()
        known |= {PERSONAL_DATA_KEY: key}
        write_json(folder.secrets, known, mode=0o600)
    return known[PERSONAL_DATA_KEY]


def load_passwords(folder: RunFolder, roles: tuple[str, ...]) -> dict[str, str]:
    """The password of each role; made once per run folder and kept."""
    known: dict[str, str] = read_json(folder.secrets) or {}
    missing = {role: secrets.token_urlsafe(PASSWORD_BYTES) for role in roles if role not in known}
    if missing:
        write_json(folder.secrets, known | missing, mode=0o600)
    return known | missing
