"""The Java of Spark's driver: what it is started with, and the errors when it does not start."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from analytics_spark.job import gateway
from analytics_spark.job.gateway import CONNECTION, JavaEnded, java_gateway, make_command
from test_support.waits import HANGS_AFTER_SECONDS


def test_spark_comes_before_the_jars_of_the_connector_on_the_class_path() -> None:
    command = make_command(["-Xmx1g"], [Path("b.jar"), Path("a.jar")], {"spark.master": "local"})

    class_path = command[command.index("-cp") + 1].split(os.pathsep)
    assert class_path[-2:] == ["a.jar", "b.jar"]
    assert any("spark-core" in jar for jar in class_path[:-2])
    assert command[1] == "-Xmx1g"
    assert "--conf=spark.master=local" in command


def test_a_java_that_ends_is_an_error_and_leaves_no_variables() -> None:
    with pytest.raises(JavaEnded, match="status 1"), java_gateway(["-XX:NoSuchOption"], [], {}):
        pass

    assert not os.environ.keys() & CONNECTION


def test_what_java_prints_can_go_to_a_file(tmp_path: Path) -> None:
    log = tmp_path / "java.log"

    with (
        log.open("wb") as output,
        pytest.raises(JavaEnded),
        java_gateway(["-XX:NoSuchOption"], [], {}, output),
    ):
        pass

    assert "NoSuchOption" in log.read_text()


def test_a_java_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "START_SECONDS_MAX", 0.0)

    with pytest.raises(JavaEnded, match="within 0 s"), java_gateway([], [], {}):
        pass


ENDS_DURING_THE_START = """
import threading, time
import psutil
from analytics_spark.job.gateway import java_gateway
threading.Thread(target=java_gateway([], [], {}).__enter__, daemon=True).start()
while not (children := psutil.Process().children()):
    time.sleep(0.01)
print(children[0].pid)
"""


def test_no_java_stays_when_this_process_ends_during_the_start(tmp_path: Path) -> None:
    """As a job does that finds no database, while Spark starts in the background."""
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_DURING_THE_START],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        timeout=HANGS_AFTER_SECONDS,
    )

    try:
        java = psutil.Process(int(ended.stdout))
    except psutil.NoSuchProcess:
        return
    java.wait(HANGS_AFTER_SECONDS)


READS_OPTIONS = """
from analytics_spark.job.session import start_session
own = {"spark.master": "local[1]", "spark.app.name": "ours", "spark.ui.enabled": "false"}
session = start_session([], [], own)
print(session.conf.get("spark.executor.instances"), session.conf.get("spark.app.name"))
session.stop()
"""


def test_spark_reads_other_options_from_its_file_and_ours_have_precedence(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.executor.instances  7\nspark.app.name  of the file\n"
    )

    started = subprocess.run(
        [sys.executable, "-c", READS_OPTIONS],
        env=os.environ | {"SPARK_CONF_DIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert started.stdout.split() == [b"7", b"ours"]
