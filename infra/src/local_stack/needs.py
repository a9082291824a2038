"""What only some processes and tools get, by the words of `needs` in `service.toml`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fetching import aot_cache
from local_stack import issuer
from local_stack.postgres import DATABASES, EVENT_STORES, RECONCILER, dsn, home
from local_stack.run_folder import personal_data_key, write_atomically
from local_stack.stack_spec import (
    READY_SECONDS_MAX,
    STOP_SECONDS_MAX,
    StackContext,
    no_files,
    no_variables,
)
from shared.runtime.declarations import DeclarationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Variables of the environment, files on disk, and the time that they take to be used."""

    variables: Callable[[StackContext], Mapping[str, str]] = no_variables
    prepare: Callable[[StackContext], None] = no_files
    ready_seconds_max: float = READY_SECONDS_MAX
    stop_seconds_max: int = STOP_SECONDS_MAX


def find_needs(words: Iterable[str]) -> tuple[Need, ...]:
    """Raises DeclarationError for an unknown word."""
    try:
        return tuple(NEEDS[word] for word in words)
    except KeyError as error:
        raise DeclarationError(
            f"needs: {error.args[0]} is unknown; known are {', '.join(NEEDS)}"
        ) from None


def personal_data_variables(context: StackContext) -> Mapping[str, str]:
    """The key that opens personal data."""
    return {"PERSONAL_DATA_KEY": personal_data_key(context.folder)}


def jaeger_ui_variables(context: StackContext) -> Mapping[str, str]:
    """Where links to traces lead; nowhere in a stack without Jaeger."""
    if "jaeger" not in context.ports:
        return {}
    return {"JAEGER_UI_URL": f"http://{context.address('jaeger')}"}


def event_store_variables(context: StackContext) -> Mapping[str, str]:
    """Every event store, with the role that only reads there."""
    return store_variables(context, EVENT_STORES)


def database_variables(context: StackContext) -> Mapping[str, str]:
    """Every database, with the same role."""
    return store_variables(context, DATABASES)


def store_variables(context: StackContext, databases: Iterable[str]) -> Mapping[str, str]:
    return {f"{name.upper()}_STORE_URL": dsn(context, RECONCILER, name) for name in databases}


def postgres_disk_variables(context: StackContext) -> Mapping[str, str]:
    """Where PostgreSQL keeps its data: no query returns how much room is left there."""
    return {"DISK_FOLDERS": f"postgres={home(context) / 'data'}"}


def canary_files(context: StackContext) -> None:
    """A token of its own, new at each `up`."""
    write_atomically(canary_token(context), issuer.canary_token(context.folder), mode=0o600)


def canary_variables(context: StackContext) -> Mapping[str, str]:
    return {"CANARY_TOKEN_FILE": str(canary_token(context))}


def canary_token(context: StackContext) -> Path:
    return context.folder / "canary-token"


def spark_files(context: StackContext) -> None:
    """The folder that Spark writes to."""
    (context.folder / "spark" / "tmp").mkdir(parents=True, exist_ok=True)


def spark_variables(context: StackContext) -> Mapping[str, str]:
    return {
        "CHECKPOINT_DIR": str(context.folder / "spark" / "checkpoint"),
        "SPARK_LOCAL_DIRS": str(context.folder / "spark" / "local"),
        "TMPDIR": str(context.folder / "spark" / "tmp"),
        "SPARK_AOT_CACHE": str(aot_cache.file_of()),
    }


def faust_variables(context: StackContext) -> Mapping[str, str]:
    """Where the tables of Faust lie."""
    return {"FAUST_DIR": str(context.folder / "faust")}


def run_dir_variables(context: StackContext) -> Mapping[str, str]:
    """All files of the stack, for what controls it."""
    return {"RUN_DIR": str(context.folder.path)}


def export_variables(context: StackContext) -> Mapping[str, str]:
    return {"EXPORT_DIR": str(context.folder / "export")}


NEEDS = {
    "personal-data-key": Need(variables=personal_data_variables),
    "jaeger-ui": Need(variables=jaeger_ui_variables),
    "event-stores": Need(variables=event_store_variables),
    "databases": Need(variables=database_variables),
    "postgres-disk": Need(variables=postgres_disk_variables),
    "canary-token": Need(variables=canary_variables, prepare=canary_files),
    "spark": Need(
        variables=spark_variables,
        prepare=spark_files,
        ready_seconds_max=300,  # a busy machine takes minutes for the first batch
        stop_seconds_max=30,  # a stop during the start waits for Spark, and then for its batch
    ),
    "faust-dir": Need(variables=faust_variables),
    "export-dir": Need(variables=export_variables),
    "run-dir": Need(variables=run_dir_variables),
    "issuer-key": Need(),  # the run folder has it; containers get it as a secret
}
