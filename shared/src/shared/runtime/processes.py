"""What every process does: read settings, log, stop when it is asked to."""

import asyncio
import gc
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from socket import socket
from typing import TypeVar

import uvloop
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from shared.runtime import logs
from shared.runtime.listening import replace_process
from shared.runtime.settings import LogSettings

S = TypeVar("S", bound=BaseSettings)

log = logging.getLogger(__name__)

FOREIGN = re.compile(r"(HTTPS?|ALL|NO)_PROXY|PG[A-Z]+", re.IGNORECASE)

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Python's default, 700, is about the objects of one request; 50,000 are a few megabytes."""


def collect_garbage_less_often() -> None:
    """Exclude the objects of the start from garbage collection, and collect less often.

    A request, or a message, creates some hundred objects and no cycles. Searching for cycles takes
    a twentieth of the time, most of it in modules that stay until the end.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def read_settings(settings: type[S]) -> S:
    """The settings of this process; ends it with one line when some are missing or malformed.

    They come from the environment, and from the files of the folder that SECRETS_DIR names, each
    called like its setting: an environment, which is shown and inherited, is no place for secrets.
    """
    try:
        return settings(_secrets_dir=os.environ.get("SECRETS_DIR"))
    except ValidationError as error:
        wrong = ", ".join(
            f"{str(each['loc'][0]).upper()}: {each['msg']}" for each in error.errors()
        )
        sys.exit(f"hometown: settings are wrong: {wrong} (see .env.example)")


def forget_foreign_variables() -> None:
    """Remove variables by which libraries would send what they send elsewhere, or differently.

    Docker passes the proxies of its own settings to each container, and asyncpg reads the defaults
    of PostgreSQL's clients: neither is a setting of a process of ours.
    """
    for name in filter(FOREIGN.fullmatch, list(os.environ)):
        del os.environ[name]


def run(main: Coroutine[object, object, None]) -> None:
    """Run a process to its end, on the quicker event loop; then its successor, if it has one."""
    with closing(main):  # it warns if it is never awaited
        forget_foreign_variables()
        logs.configure(read_settings(LogSettings))
        try:
            uvloop.run(run_within_loop(main))
        except Exception as error:
            log.critical("the process ends: %s", logs.name_error(error), exc_info=error)
            sys.exit(1)
    for listening in passed_on:
        replace_process(listening)


async def run_within_loop(main: Coroutine[object, object, None]) -> None:
    asyncio.get_running_loop().set_exception_handler(logs.log_unhandled)
    await main


passed_on: list[socket] = []
"""The listening socket of a process that is replaced at its end."""


def replace_at_end(listening: socket) -> None:
    """Execute the command of this process again when all of its resources are closed."""
    passed_on.append(listening)


def hold_signal(number: signal.Signals) -> None:
    """Let a signal wait while nothing handles it, also in the program that this process executes at
    its end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def release_signal(number: signal.Signals) -> None:
    """Deliver a signal again, and the one that has waited."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


def create_stop_event() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets."""
    event = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, event.set)
    return event


@contextmanager
def bounded_stop(seconds_max: float) -> Iterator[Callable[[], None]]:
    """Yields a function that begins the stop: unless the block is left in time, the process ends.

    A task that ignores its cancellation, or blocks the event loop, would keep the process from its
    end, and with it whatever waits for its place; the supervisor starts another one.
    """
    timer = threading.Timer(seconds_max, end_at_once, (seconds_max,))
    timer.daemon = True
    try:
        yield timer.start
    finally:
        timer.cancel()


def end_at_once(seconds: float) -> None:
    log.error("the process has not stopped after %.0f s and ends at once", seconds)
    os._exit(1)


async def wait(event: asyncio.Event, seconds_max: float) -> None:
    """Until the event is set, at most `seconds_max`."""
    try:
        async with asyncio.timeout(seconds_max):
            await event.wait()
    except TimeoutError:
        pass
