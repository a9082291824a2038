"""Real servers for tests: each in a folder of its own under the temporary folder, on free ports.

with throwaway_stack(StackSpec(processes=(POSTGRES, KAFKA))) as context:
    dsn(context, "users"), context.address("kafka")
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from fetching.settings import Settings
from local_stack import issuer, orphans
from local_stack.down import down
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES, ROLES, dsn
from local_stack.run_folder import RunFolder
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.up import up

FOLDER_PREFIX = "hometown-test-"


@contextmanager
def throwaway_stack(spec: StackSpec) -> Iterator[StackContext]:
    """Everything is up and ready inside, and gone afterwards."""
    sweep()
    settings = Settings(run_dir=new_folder(), ports="free", ports_given={})
    folder = RunFolder(settings.run_dir)
    try:
        yield up(spec, settings)
    finally:
        down(spec, folder)
        folder.remove()


@contextmanager
def throwaway_postgres() -> Iterator[Mapping[str, str]]:
    """The DSN of each role by its name; `postgres` is the superuser's."""
    with throwaway_stack(StackSpec(processes=(POSTGRES,))) as context:
        yield {role: dsn(context, role) for role in ROLES}


@contextmanager
def throwaway_kafka() -> Iterator[str]:
    """The bootstrap server of a broker without topics."""
    with throwaway_stack(StackSpec(processes=(KAFKA,))) as context:
        yield context.address("kafka")


def bearer(folder: RunFolder, role: str, subject: str | None = None) -> dict[str, str]:
    """The header of a caller in this role."""
    return {"Authorization": f"Bearer {issuer.token(folder, role, subject)}"}


def new_folder() -> Path:
    """A folder that carries the id of this process, and that PostgreSQL's own user can enter."""
    folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
    folder.chmod(0o711)
    return folder


def sweep() -> None:
    """End and remove the stacks of test runs that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        owner = int(folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0])
        if not psutil.pid_exists(owner):
            orphans.end(RunFolder(folder))
            RunFolder(folder).remove()
