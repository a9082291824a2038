"""The verbs of the stack: `up|down|status|logs|run|token|clean|footprint|fetch`."""

import argparse
import contextlib
import itertools
import json
import sys
from collections.abc import Callable

from pydantic import ValidationError

from embedded import browser, class_archive, figures, footprint, issuer, logs, status, tools
from embedded.composition import Composition
from embedded.down import down
from embedded.errors import Failure
from embedded.hometown import HOMETOWN
from embedded.jaeger_binary import obtain
from embedded.jars import KAFKA_JARS, SPARK_JARS, fetch
from embedded.java import find_java
from embedded.progress import complain, tell
from embedded.run_folder import RunFolder
from embedded.settings import Settings
from embedded.up import address_table, up
from shared.identifiers import new_id
from shared.progress import tell_in_place

LOG_LINES_DEFAULT = 20

Verb = Callable[[argparse.Namespace, Settings, Composition], int]


def do_up(arguments: argparse.Namespace, settings: Settings, composition: Composition) -> int:
    site = up(composition, settings, arguments.asked)
    tell("\n" + address_table(composition, site))
    return 0


def do_down(arguments: argparse.Namespace, settings: Settings, composition: Composition) -> int:
    down(composition, RunFolder(settings.run_dir))
    return 0


def do_status(arguments: argparse.Namespace, settings: Settings, composition: Composition) -> int:
    statuses = status.status(composition, settings)
    if arguments.json:
        tell(json.dumps(status.as_json(statuses), indent=2))
    else:
        tell(status.as_table(statuses))
    return 0 if all(each.is_fine for each in statuses) else 1


def do_logs(arguments: argparse.Namespace, settings: Settings, composition: Composition) -> int:
    files = logs.chosen(RunFolder(settings.run_dir), arguments.name)
    more = logs.follow(files) if arguments.follow else ()
    with contextlib.suppress(KeyboardInterrupt):
        for line in itertools.chain(logs.last(files, arguments.lines), more):
            tell(line)
    return 0


def do_clean(arguments: argparse.Namespace, settings: Settings, composition: Composition) -> int:
    folder = RunFolder(settings.run_dir)
    down(composition, folder)
    folder.remove()
    return 0


def do_footprint(
    arguments: argparse.Namespace, settings: Settings, composition: Composition
) -> int:
    folder = RunFolder(settings.run_dir)
    memories = footprint.footprint(composition, folder)
    figures.write(folder, "footprint", footprint.as_figures(memories))
    tell(footprint.as_table(memories))
    return 0


def do_run(arguments: argparse.Namespace, settings: Settings, composition: Composition) -> int:
    return tools.run(
        composition, settings, arguments.service, arguments.arguments, arguments.without
    )


def do_token(arguments: argparse.Namespace, settings: Settings, composition: Composition) -> int:
    """Nothing but the token on standard output: it is made to be put into a variable."""
    is_new = arguments.role == issuer.PERSONAL and not arguments.subject
    subject = str(new_id()) if is_new else arguments.subject
    folder = RunFolder(settings.run_dir)
    token = issuer.token(folder, arguments.role, subject, hours=arguments.hours)
    if is_new:
        complain(f"a user who has yet to register: {subject}")
    tell(token)
    return 0


def do_fetch(arguments: argparse.Namespace, settings: Settings, composition: Composition) -> int:
    find_java()
    for jars in (KAFKA_JARS, SPARK_JARS):
        tell(f"{jars.name} jars in {fetch(jars, settings, tell_in_place)}")
    tell(f"{class_archive.WHAT} in {class_archive.make(settings, tell_in_place)}")
    if arguments.jaeger:
        tell(f"jaeger in {obtain(settings, tell_in_place)}")
    if arguments.browser:
        tell(f"browser in {browser.obtain(settings, tell_in_place).program}")
    return 0


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="embedded", description=__doc__)
    verbs = root.add_subparsers(required=True, metavar="verb")

    def add(name: str, verb: Verb, words: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=words, description=words)
        added.set_defaults(verb=verb)
        return added

    started = add("up", do_up, "start everything that does not run yet, and wait until it is ready")
    started.add_argument(
        "--with", dest="asked", metavar="PROCESS", action="append", default=[], help="this one, too"
    )
    add("down", do_down, "stop everything, and see that no process is left")
    add("clean", do_clean, "stop everything and remove its data; downloads stay")
    add("footprint", do_footprint, "resident memory per process and in all")
    shown = add("status", do_status, "what runs, where, and why not; exit 0 if all is ready")
    shown.add_argument("--json", action="store_true", help="for programs")
    read = add("logs", do_logs, "the last lines of one process, or of all")
    read.add_argument("name", nargs="?", help="a process, such as users-api")
    read.add_argument("-f", "--follow", action="store_true", help="go on until interrupted")
    read.add_argument("-n", "--lines", type=int, default=LOG_LINES_DEFAULT, help="how many")
    ran = add("run", do_run, "run a command of a service, as the owner of its database")
    ran.add_argument("--without", metavar="PROCESS", help="stop this process meanwhile")
    ran.add_argument("service", help="users, orders or analytics")
    ran.add_argument("arguments", nargs=argparse.REMAINDER, help="such as: rebuild --check")
    issued = add("token", do_token, "a token for calls to the APIs, on standard output")
    issued.add_argument("role", nargs="?", default="", help=", ".join(issuer.ROLES))
    issued.add_argument("--subject", help="who calls; a user's id for a user")
    issued.add_argument("--hours", type=float, default=issuer.HOURS_DEFAULT, help="how long")
    got = add(
        "fetch",
        do_fetch,
        "download the jars, and make the archive of Spark's classes",
    )
    got.add_argument("--jaeger", action="store_true", help="and get or build Jaeger")
    got.add_argument("--browser", action="store_true", help="and get one for the page's tests")
    return root


def main(composition: Composition = HOMETOWN) -> int:
    """0 if all went well, 1 with one line on standard error if not."""
    arguments = parser().parse_args()
    try:
        return int(arguments.verb(arguments, Settings(), composition))
    except Failure as failure:
        for line in failure.details:
            sys.stderr.write(f"  {line}\n")
        complain(str(failure))
    except OSError as error:
        complain(f"{error.filename or 'the system'}: {error.strerror or error}; correct that first")
    except (ValidationError, ValueError) as error:
        complain(f"a setting is malformed: {one_line(error)}")
    except KeyboardInterrupt:
        complain("interrupted; `make status` says what runs, `make down` stops it")
    return 1


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
