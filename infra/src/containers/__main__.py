"""The verbs of the stack in containers, such as `up|down|status|logs|lag|run|replace`."""

import argparse
import contextlib
import sys

from containers import faults, footprint, rolling, status
from containers.republishing import republish
from containers.rotation import rotate
from containers.settings import ContainerSettings
from containers.tools import run
from containers.up import down, find_project, up
from fetching.errors import Failure
from local_stack import figures, logs, observing
from local_stack.command_line import CommandLine, Verbs
from local_stack.progress import table, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.status import show


def do_up(arguments: argparse.Namespace, settings: Settings) -> int:
    context = up(settings, arguments.asked)
    project = find_project(settings)
    running = project.containers()
    rows = [
        (each.name, each.address(context)) for each in project.published if each.name in running
    ]
    tell("\n" + table(("name", "address"), rows))
    return 0


def do_down(arguments: argparse.Namespace, settings: Settings) -> int:
    project = find_project(settings)
    project.demand_own(RunFolder(settings.run_dir))
    return down(project)


def do_clean(arguments: argparse.Namespace, settings: Settings) -> int:
    folder = RunFolder(settings.run_dir)
    folder.demand(settings.way)
    project = find_project(settings)
    project.demand_own(folder)
    ended = down(project, "--volumes")
    folder.remove()
    return ended


def do_footprint(arguments: argparse.Namespace, settings: Settings) -> int:
    memories = footprint.footprint(find_project(settings))
    figures.write(RunFolder(settings.run_dir), "footprint", footprint.as_figures(memories))
    tell(footprint.as_table(memories))
    return 0


def do_status(arguments: argparse.Namespace, settings: Settings) -> int:
    return show(status.status(find_project(settings)), as_json=arguments.json)


def do_logs(arguments: argparse.Namespace, settings: Settings) -> int:
    project = find_project(settings)
    if arguments.order:
        logs.show_order(project.log_lines, arguments)
        return 0
    follow = ["--follow"] if arguments.follow else []
    chosen = [arguments.name] if arguments.name else []
    with contextlib.suppress(KeyboardInterrupt):
        for process, text in project.log_lines("--tail", str(arguments.lines), *follow, *chosen):
            tell(logs.readable(text) if arguments.name else logs.with_label(process, text))
    return 0


def do_lag(arguments: argparse.Namespace, settings: Settings) -> int:
    project = find_project(settings)
    if observing.OBSERVER not in project.containers():
        raise Failure(f"nothing runs here: `make up {project.way}`, then again")
    command = observing.get_command(as_json=arguments.json)
    return project.call("exec", "--no-TTY", observing.OBSERVER, "python", *command)


def do_run(arguments: argparse.Namespace, settings: Settings) -> int:
    return run(find_project(settings), arguments.service, arguments.arguments, arguments.without)


def do_kill(arguments: argparse.Namespace, settings: Settings) -> int:
    faults.kill(find_project(settings), arguments.name)
    return 0


def do_stop(arguments: argparse.Namespace, settings: Settings) -> int:
    faults.stop(find_project(settings), arguments.name, arguments.seconds)
    return 0


def do_rotate(arguments: argparse.Namespace, settings: Settings) -> int:
    rotate(find_project(settings), arguments.what, arguments.hours)
    return 0


def do_replace(arguments: argparse.Namespace, settings: Settings) -> int:
    rolling.replace(find_project(settings), arguments.name)
    return 0


def do_republish(arguments: argparse.Namespace, settings: Settings) -> int:
    republish(find_project(settings))
    return 0


def main() -> int:
    """0 if all went well, 1 with one line on standard error if not."""
    verbs = Verbs(
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
    command_line = CommandLine("containers", __doc__, verbs, ContainerSettings)
    text = "replace the containers of a process, such as users-api, one after the other"
    command_line.add("replace", do_replace, text).add_argument("name")
    return command_line.main()


if __name__ == "__main__":
    sys.exit(main())
