"""What a killed Spark leaves is removed at the next start, and what a running one uses is kept."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analytics_spark.job.scratch import make_own_folder

PROCESS = """
import subprocess, sys
from pathlib import Path
from analytics_spark.job.scratch import make_own_folder

own = make_own_folder(Path(sys.argv[1]))
(own / "of-spark").write_text("some megabytes")
child = subprocess.Popen(["sleep", "60"])
print(own, child.pid, flush=True)
child.wait()
"""
"""A process that runs a child, as the job does."""


@contextmanager
def spark(root: Path) -> Iterator[Path]:
    """The folder of a process that is killed at the end; its child lives a little longer."""
    command = [sys.executable, "-c", PROCESS, str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder, child = process.stdout.readline().split()
        try:
            yield Path(folder)
        finally:
            process.kill()
            process.wait()
            make_own_folder(root)
            subprocess.run(["kill", child], check=True)


def test_the_folder_of_a_killed_process_is_removed_at_the_next_start(tmp_path: Path) -> None:
    with spark(tmp_path) as killed, spark(tmp_path) as alive:
        own = make_own_folder(tmp_path)
        assert {killed, alive, own} == set(tmp_path.iterdir())
        assert (killed / "of-spark").exists()

    assert not killed.exists()
    assert not alive.exists()
    assert own.exists()


def test_what_is_not_a_folder_of_a_process_is_kept(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()

    make_own_folder(tmp_path)

    assert (tmp_path / "kept").exists()
