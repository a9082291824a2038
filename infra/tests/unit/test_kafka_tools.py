"""Kafka's own commands get the address of the brokers, and in a cluster the visitor's login."""

import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from containers.visiting import require_connected
from fetching.errors import Failure
from fetching.jars import KAFKA_JARS
from local_stack import kafka_tools
from local_stack.__main__ import main
from local_stack.hometown import HOMETOWN
from local_stack.kafka_tools import LOGIN_FILE, TOOLS, create_command
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from shared.runtime.brokers import Brokers, Login

PLAIN = Brokers("127.0.0.1:19092")


@pytest.fixture
def cluster(folder: RunFolder) -> Brokers:
    login = Login(username="visitor", password="pass", ca_file=folder.authority)
    return Brokers("127.0.0.1:19092,127.0.0.1:19093", login)


@pytest.fixture(autouse=True)
def jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(kafka_tools, "fetch", lambda *_: tmp_path / "jars")
    return tmp_path / "jars"


def test_a_command_is_a_class_of_the_jars_with_the_address_of_the_broker(
    settings: Settings, jars: Path
) -> None:
    java, *options = create_command(settings, PLAIN, "topics", ["--list"])

    assert Path(java).name == "java"
    assert options[-6:] == [
        *("-cp", f"{jars}/*", "org.apache.kafka.tools.TopicCommand"),
        *("--bootstrap-server", "127.0.0.1:19092", "--list"),
    ]


def test_a_login_is_in_a_file_for_its_own_user_only(
    settings: Settings, folder: RunFolder, cluster: Brokers
) -> None:
    command = create_command(settings, cluster, "consumer-groups", ["--list"])

    file = folder / LOGIN_FILE
    assert command[-3:] == ["--command-config", str(file), "--list"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert 'username="visitor" password="pass";' in file.read_text()
    assert "pass" not in " ".join(command)


def test_what_reads_files_needs_no_broker(settings: Settings, cluster: Brokers) -> None:
    command = create_command(settings, cluster, "dump-log", ["--files", "00.log"])

    assert command[-3:] == [TOOLS["dump-log"].program, "--files", "00.log"]


def test_what_cannot_log_in_says_so(settings: Settings, cluster: Brokers) -> None:
    with pytest.raises(Failure, match="replica-verification has no option for a login"):
        create_command(settings, cluster, "replica-verification", [])


def test_the_files_of_a_broker_in_a_container_are_read_inside() -> None:
    require_connected("topics")
    with pytest.raises(Failure, match=r"docker compose exec kafka .+/kafka-dump-log\.sh"):
        require_connected("dump-log")


@pytest.mark.parametrize("name", TOOLS)
def test_each_class_is_in_the_jars_that_are_fetched_for_the_broker(name: str) -> None:
    wanted = TOOLS[name].program.replace(".", "/") + ".class"
    folder = KAFKA_JARS.folder(Settings())
    if not folder.is_dir():
        pytest.skip("the jars are not fetched yet")

    assert any(wanted in ZipFile(jar).namelist() for jar in folder.glob("kafka*.jar"))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["local_stack", "kafka", *arguments])
    return main(HOMETOWN)


def test_without_a_name_all_tools_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch) == 0

    printed = capsys.readouterr().out
    assert all(f"\n{name} " in printed for name in (*TOOLS, kafka_tools.UNDER_REPLICATED))


def test_a_tool_needs_a_broker_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path / "never"))

    assert run(monkeypatch, "topics", "--list") == 1
    assert capsys.readouterr().err == "hometown: kafka does not run here: `make up`, then again\n"


def test_an_unknown_tool_is_one_line(settings: Settings) -> None:
    with pytest.raises(Failure, match=r"there is no tool topic: one of topics, .*under-replicated"):
        create_command(settings, PLAIN, "topic", [])
