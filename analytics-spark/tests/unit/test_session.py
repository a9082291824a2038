"""The options of Spark and of Java, and their effect."""

import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

from pydantic import PostgresDsn

from analytics_spark.job.session import (
    CHECKPOINT_FILES,
    WORKER_VARIABLES,
    configuration,
    get_class_sharing_options,
)
from analytics_spark.settings import JobSettings
from fetching.java import find_java


def settings(master: str) -> JobSettings:
    return JobSettings(
        environment="development",
        database_url=PostgresDsn("postgresql://analytics@127.0.0.1/analytics"),
        checkpoint_dir=Path("checkpoint"),
        spark_jars_dir=Path("jars"),
        spark_master=master,
    )


def test_a_local_spark_is_not_reachable_from_outside() -> None:
    options = configuration(settings("local[2]"))

    assert options["spark.driver.host"] == options["spark.driver.bindAddress"] == "127.0.0.1"
    assert CHECKPOINT_FILES in options.values()


def test_executors_of_a_cluster_find_the_driver_by_its_name() -> None:
    options = configuration(settings("spark://spark-master:7077"))

    assert options["spark.driver.host"] == socket.gethostname()
    assert options["spark.executor.memory"] == "1g"
    assert CHECKPOINT_FILES not in options.values()
    assert str(options["spark.hadoop.fs.AbstractFileSystem.file.impl"]).endswith(".RawLocalFs")


def test_java_gets_an_existing_archive(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    assert get_class_sharing_options(None, writes=False) == []
    assert get_class_sharing_options(archive, writes=False) == []
    archive.touch()
    assert get_class_sharing_options(archive, writes=False) == [f"-XX:SharedArchiveFile={archive}"]


def test_java_starts_without_an_archive_that_does_not_fit(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    archive.write_bytes(b"of another Java" * 1000)

    options = get_class_sharing_options(archive, writes=False)
    result = subprocess.run([find_java(), *options, "-version"], capture_output=True, timeout=30)

    assert result.returncode == 0


def test_what_spark_starts_imports_what_is_installed_and_not_what_is_in_archives(
    tmp_path: Path,
) -> None:
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("pyspark.py", "")
    place = [sys.executable, "-c", "import pyspark; print(pyspark.__file__)"]

    path = {"PYTHONPATH": os.pathsep.join([str(archive), str(WORKER_VARIABLES["PYTHONPATH"])])}
    output = subprocess.run(place, env=os.environ | path, stdout=subprocess.PIPE, timeout=30)

    assert "site-packages" in output.stdout.decode()
