"""Processes inherit documented settings and little else, whatever the caller's environment has."""

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from fetching.environment import find_documented, inherit, inherit_for_downloads
from local_stack import supervision
from local_stack.run_folder import RunFolder
from local_stack.settings import CHECKOUT
from shared.runtime.processes import forget_foreign_variables

PROXIES = {
    name: "http://127.0.0.1:9"
    for word in ("http", "https", "all", "no")
    for name in (f"{word}_proxy", f"{word.upper()}_PROXY")
}
FOREIGN = PROXIES | {
    "PGHOST": "elsewhere",
    "PGPORT": "1",
    "PGUSER": "jack",
    "PGPASSWORD": "x",
    "PGPASSFILE": "/nowhere",
    "PGSERVICE": "other",
    "PGSSLMODE": "require",
    "PGOPTIONS": "-c default_transaction_read_only=on",
    "PGTARGETSESSIONATTRS": "read-only",
    "SPARK_HOME": "/opt/spark",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_LOCAL_HOSTNAME": "elsewhere",
    "SPARK_LOCAL_IP": "10.0.0.1",
    "PYSPARK_PYTHON": "python2",
    "PYSPARK_SUBMIT_ARGS": "--master yarn",
    "HADOOP_CONF_DIR": "/opt/hadoop",
    "JAVA_HOME": "/opt/java8",
    "JAVA_TOOL_OPTIONS": "-Xmx1m",
    "JDK_JAVA_OPTIONS": "-Xmx1m",
    "_JAVA_OPTIONS": "-Xmx1m",
    "CLASSPATH": "/opt/other.jar",
    "KAFKA_OPTS": "-Xmx1m",
    "LOG_DIR": "/nowhere",
    "PYTHONPATH": "/opt/other",
    "PYTHONHOME": "/opt/python2",
    "PYTHONWARNINGS": "error",
    "PYTHONOPTIMIZE": "2",
    "VIRTUAL_ENV": "/opt/venv",
    "LD_PRELOAD": "/opt/other.so",
    "OTEL_SDK_DISABLED": "true",
    "OTEL_EXPORTER_OTLP_HEADERS": "x=y",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://elsewhere",
    "OTEL_PROPAGATORS": "b3",
    "REQUESTS_CA_BUNDLE": "/nowhere",
    "SSL_CERT_FILE": "/nowhere",
    "SSLKEYLOGFILE": "/tmp/keys",
    "DATABASE_URL": "postgresql://elsewhere",
    "HTTP_PORT": "80",
    "MALLOC_ARENA_MAX": "1",
    "UVICORN_WORKERS": "4",
    "WEB_CONCURRENCY": "4",
    "AWS_SECRET_ACCESS_KEY": "x",
}
OURS = {
    "PATH": "/bin",
    "HOME": "/home/jack",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "TZ": "Asia/Kolkata",
    "TMPDIR": "/tmp",
    "XDG_CACHE_HOME": "/cache",
    "HOMETOWN_RUN_DIR": "/run",
    "HOMETOWN_PORT_USERS_API": "1",
    "LATENESS_SECONDS": "60",
    "LOG_LEVEL": "DEBUG",
    "HOMETOWN_LOG_LEVEL_USERS_API": "DEBUG",
    "NICENESS": "0",
    "OTEL_TRACES_SAMPLER": "always_on",
    "OTEL_METRICS_EXPORTER": "none",
}


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    return os.environ


@pytest.mark.parametrize("name", FOREIGN)
def test_no_process_inherits_a_variable_of_another_program(name: str) -> None:
    assert inherit(OURS | FOREIGN).get(name) is None


@pytest.mark.parametrize("name", OURS)
def test_a_process_inherits_what_is_documented(name: str) -> None:
    assert inherit(OURS | FOREIGN)[name] == OURS[name]


def test_the_supervisor_gives_no_more(folder: RunFolder, hostile: Mapping[str, str]) -> None:
    given = supervision.environment(folder)

    assert {name for name in FOREIGN if given.get(name) == hostile[name]} == set()


def test_java_gets_the_options_that_are_meant_for_ours() -> None:
    given = inherit(OURS | FOREIGN | {"HOMETOWN_JAVA_OPTIONS": "-Xint"})

    assert given["JDK_JAVA_OPTIONS"] == "-Xint"


def test_a_download_can_be_made_through_a_proxy() -> None:
    given = inherit_for_downloads(OURS | FOREIGN | {"GOPROXY": "https://mirror"})

    assert given == {**PROXIES, "SSL_CERT_FILE": "/nowhere", "GOPROXY": "https://mirror"}


def test_the_settings_are_found() -> None:
    assert find_documented() >= {"LATENESS_SECONDS", "DATABASE_CONNECTIONS_MAX", "JAEGER_BIN"}


def test_a_process_forgets_what_a_container_was_given(hostile: Mapping[str, str]) -> None:
    forget_foreign_variables()

    assert not {name for name in hostile if name.upper().endswith("_PROXY")}
    assert not {name for name in hostile if name.startswith("PG")}
    assert hostile["SPARK_HOME"]


RUN = """
import os
from shared.runtime import processes

async def show() -> None:
    print(*os.environ)

processes.run(show())
"""


def test_a_process_forgets_it_before_it_does_anything(hostile: Mapping[str, str]) -> None:
    script = [sys.executable, "-E", "-c", RUN]

    ended = subprocess.run(script, env=hostile, capture_output=True, text=True, check=True)

    seen = set(ended.stdout.split())
    assert "SPARK_HOME" in seen
    assert not {name for name in seen if name.startswith("PG") or name.upper().endswith("_PROXY")}


def list_kept(makefile: str, **settings: str) -> set[str]:
    """The variables that a recipe gets, of those and of what would change it."""
    ended = subprocess.run(
        ["make", "-f", "-", "listed"],
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"], **settings, **FOREIGN},
        input=f"{makefile}\nlisted:\n\t@env '{sys.executable}' -E -c "
        "'import os; print(*os.environ)'\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stdout.split())


def test_a_verb_forgets_what_would_change_it() -> None:
    """As far as `make` can: what it downloads may need a proxy."""
    settings = {"SPARK_DRIVER_MEMORY": "2g", "OTEL_TRACES_SAMPLER": "always_on"}
    kept = list_kept((CHECKOUT / "Makefile").read_text(), **settings)

    patterns = ("PG", "PYTHON", "SPARK_", "PYSPARK_", "HADOOP_", "OTEL_")
    assert {name for name in kept if name.startswith(patterns)} == {*settings, "PYTHON"}
    assert "HTTPS_PROXY" in kept


def test_a_setting_is_kept_whatever_the_project_is_called() -> None:
    """Its name is their prefix, and can begin as variables of other programs do."""
    makefile = (CHECKOUT / "Makefile").read_text().replace("HOMETOWN", "PGDELI")

    kept = list_kept(makefile, PGDELI_PORT_USERS_API="1")

    assert {name for name in kept if name.startswith("PG")} == {"PGDELI_PORT_USERS_API"}
