"""What only some processes and tools get, by the words of `needs` in `service.toml`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from fetching import aot_cache
from fetching.jars import SPARK_JARS, fetch
from local_stack.postgres import DATABASES, READ_BY_RECONCILER, RECONCILER, dsn
from local_stack.run_folder import personal_data_key
from local_stack.stack_spec import (
    READY_SECONDS_MAX,
    STOP_SECONDS_MAX,
    StackContext,
    no_files,
    no_variables,
)
from shared.runtime.declarations import DeclarationError
from shared.runtime.progress import tell_in_place


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


def store_variables(databases: Iterable[str], context: StackContext) -> Mapping[str, str]:
    """The address of each database, with the role that only reads there."""
    return {f"{name.upper()}_STORE_URL": dsn(context, RECONCILER, name) for name in databases}


def data_folder_variables(context: StackContext) -> Mapping[str, str]:
    """Where the data of all servers lie."""
    return {"DATA_FOLDER": str(context.folder.path)}


def spark_files(context: StackContext) -> None:
    """The connector jars, and the folder that Spark writes to.

    Raises:
        Failure: the jars cannot be downloaded.
    """
    fetch(SPARK_JARS, context.settings, tell_in_place)
    (context.folder / "spark" / "tmp").mkdir(parents=True, exist_ok=True)


def spark_variables(context: StackContext) -> Mapping[str, str]:
    return {
        "CHECKPOINT_DIR": str(context.folder / "spark" / "checkpoint"),
        "SPARK_LOCAL_DIRS": str(context.folder / "spark" / "local"),
        "TMPDIR": str(context.folder / "spark" / "tmp"),
        "SPARK_JARS_DIR": str(SPARK_JARS.folder(context.settings)),
        "SPARK_AOT_CACHE": str(aot_cache.file_of(context.settings)),
    }


def faust_variables(context: StackContext) -> Mapping[str, str]:
    """Where the tables of Faust lie."""
    return {"FAUST_DIR": str(context.folder / "faust")}


def export_variables(context: StackContext) -> Mapping[str, str]:
    return {"EXPORT_DIR": str(context.folder / "export")}


NEEDS = {
    "personal-data-key": Need(variables=personal_data_variables),
    "jaeger-ui": Need(variables=jaeger_ui_variables),
    "event-stores": Need(variables=partial(store_variables, READ_BY_RECONCILER)),
    "databases": Need(variables=partial(store_variables, DATABASES)),
    "data-folder": Need(variables=data_folder_variables),
    "spark": Need(
        variables=spark_variables,
        prepare=spark_files,
        ready_seconds_max=300,  # a busy machine takes minutes for the first batch
        stop_seconds_max=30,  # a stop during the start waits for Spark, and then for its batch
    ),
    "faust-dir": Need(variables=faust_variables),
    "export-dir": Need(variables=export_variables),
}
