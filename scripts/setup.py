"""Make this checkout ready to run: a pinned uv in .tools, and every package in .venv.

    python3 scripts/setup.py

Only the standard library, and above the version check nothing that an old Python cannot read.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import IO

if sys.version_info < (3, 11):  # noqa: UP036 - this line reports it
    version = ".".join(str(part) for part in sys.version_info[:3])
    sys.exit(
        "hometown: this is Python " + version + ", which is too old: "
        "install 3.11 or newer; where it has another name, write PYTHON=python3.12 into .env"
    )

UV_VERSION = "0.13.8"
TOOL_SECONDS_MAX = 300
SYNC_SECONDS_MAX = 1800
SYNC_OPTIONS = ("--frozen", "--all-packages", "--all-groups")
PROGRESS_SECONDS = 10
POLL_SECONDS = 0.1

UNUSABLE = re.compile(r'[\x00-\x1f\x7f%#;,:"$`\\]')
"""The same characters as in infra/src/fetching/settings.py, which is not there yet."""

CHECKOUT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = CHECKOUT / ".tools"
VENV = CHECKOUT / ".venv"
STAMP = VENV / "hometown-setup"


class SetupError(Exception):
    """The message is one line that names what to do."""


def main() -> int:
    """0 if the checkout is ready, 1 with one line on standard error if not."""
    try:
        demand_usable(str(CHECKOUT))
        wanted = fingerprint()
        if not is_done(wanted):
            with one_at_a_time():
                if not is_done(wanted):
                    if not VENV.exists():
                        report_problems()
                    provide_uv()
                    provide_packages()
                    STAMP.write_text(wanted)
    except SetupError as error:
        sys.stderr.write(f"hometown: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(
            f"hometown: cannot write to {error.filename} ({error.strerror}): make room "
            "there, or make it writable, then `make setup`\n"
        )
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("hometown: interrupted; `make setup` continues where it stopped\n")
        return 1
    return 0


def demand_usable(path: str) -> None:
    """Raises SetupError: a program could not use the path of this checkout."""
    found = UNUSABLE.search(path)
    if found:
        raise SetupError(f"the path {path} has {found[0]!r} in it: move this checkout")


def fingerprint() -> str:
    """All that determines the content of .venv: the lock, the members, this interpreter, uv, and
    the path, of which the members are installed."""
    parts = (UV_VERSION, *SYNC_OPTIONS, sys.executable, sys.version, str(CHECKOUT))
    digest = hashlib.sha256(" ".join(parts).encode())
    manifests = [CHECKOUT / "pyproject.toml", *sorted(CHECKOUT.glob("*/pyproject.toml"))]
    for path in [CHECKOUT / "uv.lock", *manifests]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_done(wanted: str) -> bool:
    """The stamp lies inside .venv, so it goes when that goes."""
    return STAMP.exists() and STAMP.read_text() == wanted and works(VENV / "bin" / "python", "-V")


def works(program: pathlib.Path, *arguments: str) -> bool:
    try:
        result = subprocess.run(
            [program, *arguments], capture_output=True, timeout=TOOL_SECONDS_MAX
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """A second setup of this checkout waits for the first one, as long as that may take at most."""
    deadline = time.monotonic() + SYNC_SECONDS_MAX
    folder = log_file().parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "setup.lock").open("w") as lock:
        while not taken(lock):
            if time.monotonic() > deadline:
                raise SetupError("another setup of this checkout does not end: stop it")
            time.sleep(POLL_SECONDS)
        yield


def taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def report_problems() -> None:
    """Print what `make doctor` finds to repair, before a first installation takes its minutes."""
    doctor = [sys.executable, "-m", "scripts.doctor", "--problems"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        found = subprocess.run(
            doctor, cwd=CHECKOUT, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX
        )
        sys.stdout.write(found.stdout)
        sys.stdout.flush()


def log_file() -> pathlib.Path:
    return pathlib.Path(os.environ.get("HOMETOWN_RUN_DIR", CHECKOUT / ".run"), "logs", "setup.log")


def provide_uv() -> None:
    """Install the pinned uv, unless it is there and runs.

    Raises:
        SetupError: it cannot be installed.
    """
    uv = TOOLS / "bin" / "uv"
    if works(uv, "--version") and (TOOLS / "uv-version").read_text() == UV_VERSION:
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    pip = [str(TOOLS / "bin" / "python"), "-m", "pip", "install", "--quiet", f"uv=={UV_VERSION}"]
    with removed_if_it_fails(TOOLS):
        run("the tool folder", [sys.executable, "-m", "venv", str(TOOLS)], TOOL_SECONDS_MAX)
        run(f"uv {UV_VERSION}", pip, TOOL_SECONDS_MAX)
        (TOOLS / "uv-version").write_text(UV_VERSION)


def provide_packages() -> None:
    """Bring .venv to the state of the lock file; a broken one is created again.

    Raises:
        SetupError: a package cannot be installed.
    """
    if VENV.exists() and not works(VENV / "bin" / "python", "-V"):
        shutil.rmtree(VENV)
    STAMP.unlink(missing_ok=True)
    sync = [str(TOOLS / "bin" / "uv"), "sync", *SYNC_OPTIONS]
    with removed_if_it_fails(VENV):
        run("the packages", [*sync, "--python", sys.executable], SYNC_SECONDS_MAX)


@contextlib.contextmanager
def removed_if_it_fails(folder: pathlib.Path) -> Iterator[None]:
    """Remove a folder on failure if it was created inside; keep one that existed before."""
    was_there = folder.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def run(what: str, command: list[str], seconds_max: float) -> None:
    """Run a command with its output in the log, and report progress from time to time.

    Raises:
        SetupError: it failed or took too long.
    """
    log = log_file()
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment.update(UV_PYTHON_DOWNLOADS="never", UV_PROJECT_ENVIRONMENT=str(VENV))
    # Compiled now and not at the first import: where Python cannot write next to the packages,
    # every process would compile what it imports at each start, which takes up to a second.
    environment.setdefault("UV_COMPILE_BYTECODE", "1")
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=CHECKOUT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            wait(process, what, began, seconds_max)
        finally:
            process.kill()  # does nothing to a process that has ended
            process.wait()
    if process.returncode != 0:
        raise SetupError(
            f"cannot install {what} ({last_words(log)}): {find_remedy(log)}, "
            f"then `make setup`; more in {log}"
        )
    tell(f"installed {what} in {time.monotonic() - began:.1f} s")


def wait(process: "subprocess.Popen[bytes]", what: str, began: float, seconds_max: float) -> None:
    """Wait until it ends or the time is over."""
    told = began
    while process.poll() is None:
        now = time.monotonic()
        if now - began > seconds_max:
            return
        if now - told > PROGRESS_SECONDS:
            told = now
            tell(f"installing {what}, {now - began:.0f} s")
        time.sleep(POLL_SECONDS)


def find_remedy(log: pathlib.Path) -> str:
    """What to do after a failure with this log. Debian's Python comes without a part of itself."""
    text = log.read_text(errors="replace")
    if "ensurepip is not" in text or "No module named venv" in text:
        named = re.search(r"apt(?:-get)? install (\S+)", text)
        return f"install the package {named[1] if named else 'python3-venv'}"
    return "check the network and the disk"


def last_words(log: pathlib.Path) -> str:
    """The last line of the log that names an error, else its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no output"])[-1]


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
