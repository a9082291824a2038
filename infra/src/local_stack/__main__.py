"""The verbs of the stack, such as `up|down|status|logs|lag|run|fetch`."""

import argparse
import contextlib
import itertools
import sys
from pathlib import Path

from fetching import aot_cache, browser
from fetching.errors import Failure
from fetching.jaeger_binary import obtain
from fetching.jars import KAFKA_JARS, SPARK_JARS, fetch
from local_stack import (
    backup,
    debugging,
    faults,
    figures,
    footprint,
    issuer,
    logs,
    observing,
    replacing,
    republishing,
    status,
    tools,
)
from local_stack.command_line import CommandLine, Verbs
from local_stack.down import down
from local_stack.hometown import HOMETOWN
from local_stack.progress import tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackSpec
from local_stack.up import WAY, address_table, up
from shared.runtime.declarations import services_dir
from shared.runtime.progress import tell_in_place


def verbs_of(spec: StackSpec) -> Verbs:
    """What can be done with a stack of these processes."""

    def do_up(arguments: argparse.Namespace, settings: Settings) -> int:
        context = up(spec, settings, arguments.asked)
        tell("\n" + address_table(spec, context))
        return 0

    def do_down(arguments: argparse.Namespace, settings: Settings) -> int:
        down(spec, RunFolder(settings.run_dir))
        return 0

    def do_clean(arguments: argparse.Namespace, settings: Settings) -> int:
        folder = RunFolder(settings.run_dir)
        folder.demand(WAY)
        down(spec, folder)
        folder.remove()
        return 0

    def do_footprint(arguments: argparse.Namespace, settings: Settings) -> int:
        folder = RunFolder(settings.run_dir)
        memories = footprint.footprint(spec, folder)
        figures.write(folder, "footprint", footprint.as_figures(memories))
        tell(footprint.as_table(memories))
        return 0

    def do_status(arguments: argparse.Namespace, settings: Settings) -> int:
        return status.show(status.status(spec, settings), as_json=arguments.json)

    def do_lag(arguments: argparse.Namespace, settings: Settings) -> int:
        return observing.show_lag(settings, as_json=arguments.json)

    def do_run(arguments: argparse.Namespace, settings: Settings) -> int:
        return tools.run(spec, settings, arguments.service, arguments.arguments, arguments.without)

    def do_kill(arguments: argparse.Namespace, settings: Settings) -> int:
        faults.kill(spec, settings, arguments.name)
        return 0

    def do_stop(arguments: argparse.Namespace, settings: Settings) -> int:
        faults.stop(spec, settings, arguments.name, arguments.seconds)
        return 0

    def do_rotate(arguments: argparse.Namespace, settings: Settings) -> int:
        if arguments.what != issuer.KEY:
            raise Failure("processes have no certificates: add in=containers or in=cluster")
        folder = RunFolder(settings.run_dir)
        folder.demand(WAY)
        with folder.locked():
            issuer.rotate(folder, hours=arguments.hours)
        return 0

    def do_republish(arguments: argparse.Namespace, settings: Settings) -> int:
        republishing.republish(spec, settings)
        return 0

    return Verbs(
        up=do_up,
        down=do_down,
        clean=do_clean,
        footprint=do_footprint,
        status=do_status,
        logs=do_logs,
        lag=do_lag,
        run=do_run,
        kill=do_kill,
        stop=do_stop,
        rotate=do_rotate,
        republish=do_republish,
    )


def do_logs(arguments: argparse.Namespace, settings: Settings) -> int:
    folder = RunFolder(settings.run_dir)
    if arguments.order:
        logs.show_order(lambda: logs.read_all(folder), arguments)
        return 0
    files = logs.choose_files(folder, arguments.name)
    more = logs.follow(files) if arguments.follow else ()
    with contextlib.suppress(KeyboardInterrupt):
        for line in itertools.chain(logs.last(files, arguments.lines), more):
            tell(line)
    return 0


def do_fetch(arguments: argparse.Namespace, settings: Settings) -> int:
    for jars in (KAFKA_JARS, SPARK_JARS):
        tell(f"{jars.name} jars in {fetch(jars, settings, tell_in_place)}")
    tell(f"{aot_cache.WHAT} in {aot_cache.make(settings, tell_in_place)}")
    if arguments.jaeger:
        tell(f"jaeger in {obtain(settings, tell_in_place)}")
    if arguments.browser:
        tell(f"browser in {browser.obtain(settings, tell_in_place).program}")
    return 0


def add_replacement(command_line: CommandLine, spec: StackSpec) -> None:
    def do_replace(arguments: argparse.Namespace, settings: Settings) -> int:
        replacing.replace(spec, settings, arguments.name)
        return 0

    text = "replace a process, such as users-api; no request to an API fails meanwhile"
    command_line.add("replace", do_replace, text).add_argument("name")


def add_development(command_line: CommandLine, spec: StackSpec) -> None:
    def do_dev(arguments: argparse.Namespace, settings: Settings) -> int:
        from local_stack import developing  # what it watches with is needed for nothing else

        def start() -> None:
            tell("\n" + address_table(spec, up(spec, settings)))

        developing.develop(spec, settings, services_dir(), start)
        return 0

    text = "start everything, and restart the processes that run a saved file"
    command_line.add("dev", do_dev, text)


def add_debugging(command_line: CommandLine, spec: StackSpec) -> None:
    def do_debug(arguments: argparse.Namespace, settings: Settings) -> int:
        return debugging.debug(spec, settings, arguments.name)

    text = "run a process in this terminal, in place of the one that the stack runs"
    command_line.add("debug", do_debug, text).add_argument("name", help="such as users-api")


def add_recovery(command_line: CommandLine, spec: StackSpec) -> None:
    """The verbs for a loss of data, and the one before it."""

    def do_backup(arguments: argparse.Namespace, settings: Settings) -> int:
        backup.backup(settings, arguments.folder)
        return 0

    def do_restore(arguments: argparse.Namespace, settings: Settings) -> int:
        backup.restore(spec, settings, arguments.folder)
        return 0

    text = "write the event stores, at one moment, and the secrets to a new folder"
    command_line.add("backup", do_backup, text).add_argument("folder", type=Path)
    text = "start a new stack with the data of a backup"
    command_line.add("restore", do_restore, text).add_argument("folder", type=Path)


def main(spec: StackSpec = HOMETOWN) -> int:
    """0 if all went well, 1 with one line on standard error if not."""
    command_line = CommandLine("local_stack", __doc__, verbs_of(spec))
    fetched = command_line.add(
        "fetch", do_fetch, "download the jars, and make Java's cache of Spark's classes"
    )
    fetched.add_argument("--jaeger", action="store_true", help="and get or build Jaeger")
    fetched.add_argument("--browser", action="store_true", help="and get one for the page's tests")
    add_replacement(command_line, spec)
    add_development(command_line, spec)
    add_debugging(command_line, spec)
    add_recovery(command_line, spec)
    return command_line.main()


if __name__ == "__main__":
    sys.exit(main())
