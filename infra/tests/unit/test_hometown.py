"""The process table holds what people and tools rely on."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from local_stack.hometown import HOMETOWN, build_spec
from local_stack.postgres import DATABASES, RECONCILER
from local_stack.settings import CHECKOUT, Settings
from local_stack.stack_spec import Process, StackContext
from shared.runtime.declarations import DeclarationError, load_declarations
from test_support.first_services import is_added, leave_out_added

SERVICES = [process for process in HOMETOWN.processes if process.tier.value == "service"]
[ANALYTICS_FAUST] = [process for process in SERVICES if process.name == "analytics-faust"]

SPARK = {
    "CHECKPOINT_DIR",
    "SPARK_AOT_CACHE",
    "SPARK_JARS_DIR",
    "SPARK_LOCAL_DIRS",
    "TMPDIR",
}
SETTINGS_OF_MAKE = {"ports_given": "HOMETOWN_PORT_USERS_API", "way": "in"}
"""Settings that people write in another form than the one that programs read."""

STORES = {"USERS_STORE_URL", "ORDERS_STORE_URL"}
OWN_VARIABLES: dict[str, set[str]] = {
    "users_svc api": {"PERSONAL_DATA_KEY", "RELAY_ADDRESS"},
    "users_svc relay": set(),
    "users_svc worker": {"RELAY_ADDRESS"},
    "orders_svc api": {"ANALYTICS_URL", "RELAY_ADDRESS", "USERS_URL"},
    "orders_svc relay": set(),
    "orders_svc worker": {"RELAY_ADDRESS"},
    "analytics_spark api": {"JAEGER_UI_URL"},
    "analytics_spark reconciler": STORES,
    "analytics_spark job": SPARK,
    "analytics_faust worker": {"ANALYTICS_URL", "FAUST_DIR"},
    "observer_svc watch": STORES | {"ANALYTICS_STORE_URL", "DATA_FOLDER"},
}
"""What each command gets besides what every process gets."""
EVERY_PROCESS = {
    "AUTH_AUDIENCE",
    "AUTH_ISSUER",
    "AUTH_JWKS_URL",
    "DATABASE_URL",
    "ENVIRONMENT",
    "HTTP_HOST",
    "HTTP_PORT",
    "KAFKA_BOOTSTRAP_SERVERS",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
}


@pytest.fixture
def whole_site(context: StackContext) -> StackContext:
    ports = {port.name: port.default for port in HOMETOWN.ports}
    return StackContext(
        settings=context.settings, folder=context.folder, ports=ports, passwords=context.passwords
    )


def environment(process: Process, context: StackContext) -> Mapping[str, str]:
    return process.environment(context)


def test_the_usual_ports() -> None:
    ports = {port.name: port.default for port in HOMETOWN.ports if not is_added(port.name)}
    assert ports == {
        "postgres": 15432,
        "kafka": 19092,
        "kafka-controller": 19093,
        "jaeger": 16686,
        "otlp": 4318,
        "users-api": 8001,
        "users-relay": 8011,
        "users-worker": 8021,
        "orders-api": 8002,
        "orders-relay": 8012,
        "orders-worker": 8022,
        "analytics-api": 8003,
        "analytics-job": 8023,
        "analytics-faust": 8004,
        "analytics-reconciler": 8033,
        "observer": 8043,
    }


@pytest.mark.parametrize("process", SERVICES, ids=lambda process: process.name)
def test_a_service_gets_the_addresses_of_its_servers(
    process: Process, whole_site: StackContext
) -> None:
    variables = environment(process, whole_site)
    assert variables["KAFKA_BOOTSTRAP_SERVERS"] == "127.0.0.1:19092"
    assert variables["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:4318"
    assert variables["ENVIRONMENT"] == "development"
    assert variables["AUTH_JWKS_URL"] == (whole_site.folder / "issuer-jwks.json").as_uri()
    assert variables["HTTP_HOST"] == "127.0.0.1"
    assert variables["HTTP_PORT"] == str(process.ports[0].default)


def test_one_process_can_have_a_level_of_its_own(
    whole_site: StackContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_LOG_LEVEL_ORDERS_WORKER", "DEBUG")

    levels = {each.name: environment(each, whole_site).get("LOG_LEVEL") for each in SERVICES}

    assert levels.pop("orders-worker") == "DEBUG"
    assert set(levels.values()) == {None}


@pytest.mark.parametrize("process", SERVICES, ids=lambda process: process.name)
def test_a_service_has_the_role_of_its_own_database(
    process: Process, whole_site: StackContext
) -> None:
    variables = environment(process, whole_site)
    if process.name in ("analytics-faust", "observer"):
        assert "DATABASE_URL" not in variables
        return
    role = process.name.partition("-")[0]
    password = whole_site.passwords[role]
    assert variables["DATABASE_URL"] == f"postgresql://{role}:{password}@127.0.0.1:15432/{role}"


def test_the_declared_processes_run_these_commands_with_these_variables(
    whole_site: StackContext,
) -> None:
    found = {
        " ".join(process.command(whole_site)[2:]): {*environment(process, whole_site)}
        for process in SERVICES
        if not is_added(process.name)
    }

    assert {name: leave_out_added(found[name]) - EVERY_PROCESS for name in found} == OWN_VARIABLES


def test_a_process_that_needs_something_unknown_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes-svc").mkdir()
    (tmp_path / "notes-svc/service.toml").write_text(
        'name = "notes"\npackage = "notes_svc"\n[processes.api]\nport = 1\nneeds = ["luck"]\n'
    )

    with pytest.raises(DeclarationError, match="needs: luck is unknown; known are personal-data"):
        build_spec(load_declarations(tmp_path))


def test_only_spark_takes_longer_to_start_and_to_stop() -> None:
    limits = {each.name: (each.ready_seconds_max, each.stop_seconds_max) for each in SERVICES}

    assert limits.pop("analytics-job") == (300, 30)
    assert set(limits.values()) == {(180, 15)}


def test_no_process_waits_for_the_one_that_is_only_compared(whole_site: StackContext) -> None:
    assert not ANALYTICS_FAUST.required
    variables = environment(ANALYTICS_FAUST, whole_site)
    assert variables["FAUST_DIR"] == str(whole_site.folder / "faust")
    assert variables["ANALYTICS_URL"] == "http://127.0.0.1:8003"


def test_spark_keeps_its_checkpoint_in_the_run_folder(whole_site: StackContext) -> None:
    job = next(process for process in SERVICES if process.name == "analytics-job")
    variables = environment(job, whole_site)
    assert variables["CHECKPOINT_DIR"] == str(whole_site.folder / "spark" / "checkpoint")
    assert variables["SPARK_JARS_DIR"].startswith(str(whole_site.settings.cache_dir))


def test_every_database_is_migrated_and_the_topics_are_created() -> None:
    names = {preparation.name for preparation in HOMETOWN.preparations}
    assert names == {*(f"{name} tables" for name in DATABASES), "topics"}


@pytest.mark.parametrize("name", DATABASES)
def test_tables_are_made_by_the_owner_which_grants_the_service_its_rights(
    name: str, whole_site: StackContext
) -> None:
    [tables] = [each for each in HOMETOWN.preparations if each.name == f"{name} tables"]
    variables = tables.environment(whole_site)
    address = f"postgresql://{name}_owner:password-of-{name}_owner@127.0.0.1:15432/{name}"
    assert variables["DATABASE_URL"] == address
    assert variables["DATABASE_SERVICE_ROLE"] == name
    assert variables["DATABASE_READER_ROLE"] == RECONCILER


def test_the_commands_of_a_service_run_as_the_owner_and_notify_its_relay(
    whole_site: StackContext,
) -> None:
    names = [tool.name for tool in HOMETOWN.tools if not is_added(tool.name)]
    assert names == ["users", "orders", "analytics"]
    for tool in HOMETOWN.tools[:2]:
        variables = tool.environment(whole_site)
        assert f"//{tool.name}_owner:" in variables["DATABASE_URL"]
        assert variables["RELAY_ADDRESS"] == whole_site.address(f"{tool.name}-relay")


def test_the_commands_of_analytics_have_the_checkpoint_of_the_job(whole_site: StackContext) -> None:
    [tool] = [each for each in HOMETOWN.tools if each.name == "analytics"]
    [job] = [each for each in SERVICES if each.name == "analytics-job"]
    variables = tool.environment(whole_site)
    assert "//analytics_owner:" in variables["DATABASE_URL"]
    assert variables["CHECKPOINT_DIR"] == environment(job, whole_site)["CHECKPOINT_DIR"]


def test_every_setting_is_in_the_example_file() -> None:
    example = (CHECKOUT / ".env.example").read_text()
    for name, field in Settings.model_fields.items():
        variable = str(field.validation_alias or f"HOMETOWN_{name.upper()}")
        assert f"#{SETTINGS_OF_MAKE.get(name, variable)}=" in example


def test_ports_are_given_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMETOWN_PORT_USERS_API", "9001")
    assert Settings().ports_given["users-api"] == 9001
