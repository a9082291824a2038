"""The job as a process that kills itself with SIGKILL when it reaches a step for the n-th time.

python mortal_job.py [STEP TIMES] [--without-epoch]
"""

import argparse
import os
import signal
from enum import StrEnum

from analytics_spark import __main__ as process
from analytics_spark.job import sink
from analytics_spark.job.failpoints import JobFailpoint
from shared.runtime import failpoints, processes


def die_at(step: JobFailpoint, times: int) -> None:
    left = times

    def hit(point: StrEnum) -> None:
        nonlocal left
        left -= point is step
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.hit = hit


def forget_epochs() -> None:
    """Apply a batch each time that Spark runs it, which the epoch row prevents."""
    sink.ADVANCE_EPOCH = sink.ADVANCE_EPOCH.replace("WHERE epoch.batch_id < excluded.batch_id", "")
    sink.INSERT_BATCH += "ON CONFLICT DO NOTHING"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", type=JobFailpoint, nargs="?")
    parser.add_argument("times", type=int, nargs="?", default=1)
    parser.add_argument("--without-epoch", action="store_true")
    arguments = parser.parse_args()
    if arguments.step:
        die_at(arguments.step, arguments.times)
    if arguments.without_epoch:
        forget_epochs()
    processes.run(process.run_job(arguments))


if __name__ == "__main__":
    main()
