"""Thousands of random interleavings of the credit saga, on PostgreSQL servers of their own.

make saga
"""

import argparse
import asyncio
import logging
import multiprocessing
import sys
import time
from collections.abc import Sequence
from multiprocessing.sharedctypes import Synchronized

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from local_stack.testing import new_database, throwaway_postgres
from shared.inbox import consumer
from verification.saga.machine import Saga
from verification.saga.world import Services, open_services

STEPS_MAX = 20
PROGRESS_SECONDS = 10.0
PAUSE_SECONDS = 0.001
"""Before a lost race is retried; a service waits longer."""


def play(
    services: Services,
    runner: asyncio.Runner,
    interleavings: int,
    number: int,
    phases: Sequence[Phase] = (Phase.generate, Phase.shrink),
) -> None:
    """Play `interleavings` random interleavings; `number` is their seed.

    Raises:
        AssertionError: the books do not balance; hypothesis has printed the steps.
    """
    Saga.services, Saga.runner = services, runner
    run_state_machine_as_test(
        seed(number)(Saga),
        settings=settings(
            max_examples=interleavings,
            stateful_step_count=STEPS_MAX,
            deadline=None,
            database=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


def play_alone(
    interleavings: int, number: int, played: "Synchronized[int]", failed: "Synchronized[int]"
) -> None:
    """`play` as a process with a PostgreSQL of its own."""
    consumer.BACKOFF_SECONDS_FIRST = PAUSE_SECONDS
    logging.getLogger("shared.inbox.consumer").setLevel(logging.ERROR)  # lost races are intended
    Saga.counted = lambda: count(played)
    with (
        throwaway_postgres() as dsns,
        new_database(dsns["postgres"]) as users,
        new_database(dsns["postgres"]) as orders,
        asyncio.Runner() as runner,
    ):
        opening = open_services(users, orders)
        services = runner.run(opening.__aenter__())
        try:
            play(services, runner, interleavings, number)
        except BaseException:
            failed.value = 1
            raise
        finally:
            runner.run(opening.__aexit__(None, None, None))


def count(played: "Synchronized[int]") -> None:
    with played.get_lock():
        played.value += 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m verification.saga", description=__doc__)
    parser.add_argument(
        "--interleavings", type=int, default=20_000, help="in all; default: %(default)s"
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=2,
        help="in parallel, each with its share; default: %(default)s",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the first process; each process adds one"
    )
    arguments = parser.parse_args()
    played = multiprocessing.Value("i", 0)
    failed = multiprocessing.Value("i", 0)
    each = -(-arguments.interleavings // arguments.processes)
    processes = [
        multiprocessing.Process(
            target=play_alone, args=(each, arguments.seed + number, played, failed)
        )
        for number in range(arguments.processes)
    ]
    began_at = time.monotonic()
    for process in processes:
        process.start()
    for process in processes:
        while process.is_alive():
            process.join(PROGRESS_SECONDS)
            report(f"{played.value} of {arguments.interleavings}")
    seconds = time.monotonic() - began_at
    if failed.value or any(process.exitcode for process in processes):
        sys.exit("hometown: an interleaving does not balance; its steps are printed above")
    report(f"{played.value} interleavings in {seconds:.0f} s: all balance, to the cent")


def report(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
