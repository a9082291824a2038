"""The command line of a stack, however it runs: its verbs, their arguments, how they fail."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from fetching.errors import Failure
from local_stack import issuer
from local_stack.faults import STOPPED_SECONDS_DEFAULT
from local_stack.progress import complain, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from shared.runtime.identifiers import new_id

LOG_LINES_DEFAULT = 20
FOR_PROGRAMS = "for programs"

Verb = Callable[[argparse.Namespace, Settings], int]
"""Runs a verb; returns its exit status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """What every stack can do, one way or the other."""

    up: Verb
    down: Verb
    clean: Verb
    footprint: Verb
    status: Verb
    logs: Verb
    lag: Verb
    run: Verb
    kill: Verb
    stop: Verb
    rotate: Verb
    republish: Verb


def give_token(arguments: argparse.Namespace, settings: Settings) -> int:
    """Nothing but the token on standard output: it is made to be put into a variable."""
    is_new = arguments.role == issuer.PERSONAL and not arguments.subject
    subject = str(new_id()) if is_new else arguments.subject
    folder = RunFolder(settings.run_dir)
    token = issuer.token(folder, arguments.role, subject, hours=arguments.hours)
    if is_new:
        complain(f"a user that is not registered yet: {subject}")
    tell(token)
    return 0


class CommandLine:
    """The parser of a stack's verbs, to which a way of running it can add its own."""

    def __init__(
        self,
        name: str,
        description: str | None,
        verbs: Verbs,
        settings: Callable[[], Settings] = Settings,
    ) -> None:
        self._settings = settings
        self._parser = argparse.ArgumentParser(prog=name, description=description)
        self._verbs = self._parser.add_subparsers(required=True, metavar="verb")
        self._add_common(verbs)

    def add(self, name: str, verb: Verb, words: str) -> argparse.ArgumentParser:
        """The parser of one more verb, for its arguments."""
        added = self._verbs.add_parser(name, help=words, description=words)
        added.set_defaults(verb=verb)
        return added

    def _add_common(self, verbs: Verbs) -> None:
        up = self.add(
            "up", verbs.up, "start everything that does not run yet, and wait until it is ready"
        )
        up.add_argument(
            "--with",
            dest="asked",
            metavar="PROCESS",
            action="append",
            default=[],
            help="this one, too",
        )
        self.add("down", verbs.down, "stop everything, and see that no process is left")
        self.add("clean", verbs.clean, "stop everything and remove its data; downloads stay")
        self.add("footprint", verbs.footprint, "memory per process and in all")
        status = self.add(
            "status", verbs.status, "what runs, where, and why not; exit 0 if all is ready"
        )
        status.add_argument("--json", action="store_true", help=FOR_PROGRAMS)
        logs = self.add("logs", verbs.logs, "the last lines of one process, or of all")
        logs.add_argument("name", nargs="?", help="a process, such as users-api")
        logs.add_argument("--order", metavar="ID", help="all lines about one order instead")
        logs.add_argument("-f", "--follow", action="store_true", help="go on until interrupted")
        logs.add_argument("-n", "--lines", type=int, default=LOG_LINES_DEFAULT, help="how many")
        text = "how far each consumer and outbox is behind; exit 1 if one has stopped"
        self.add("lag", verbs.lag, text).add_argument(
            "--json", action="store_true", help=FOR_PROGRAMS
        )
        rotate = self.add("rotate", verbs.rotate, "replace the issuer's key, or certificates")
        rotate.add_argument("what", choices=issuer.ROTATED)
        rotate.add_argument(
            "--hours",
            type=float,
            default=issuer.HOURS_DEFAULT,
            help="how long tokens of the former key are accepted",
        )
        text = "end a process as kill -9 does, and wait until it is back"
        self.add("kill", verbs.kill, text).add_argument("name", help="such as users-relay")
        stop = self.add("stop", verbs.stop, "stop a process for some seconds, and start it again")
        stop.add_argument("name", help="such as kafka")
        stop.add_argument("--seconds", type=float, default=STOPPED_SECONDS_DEFAULT, help="how long")
        run = self.add("run", verbs.run, "run a command of a service, as the owner of its database")
        run.add_argument("--without", metavar="PROCESS", help="stop this process meanwhile")
        run.add_argument("service", help="users, orders or analytics")
        run.add_argument("arguments", nargs=argparse.REMAINDER, help="such as: rebuild --check")
        text = "publish all topics again from the event stores, and count the hours again"
        self.add("republish", verbs.republish, text)
        token = self.add("token", give_token, "a token for calls to the APIs, on standard output")
        token.add_argument("role", nargs="?", default="", help=", ".join(issuer.ROLES))
        token.add_argument("--subject", help="who calls; a user's id for a user")
        token.add_argument("--hours", type=float, default=issuer.HOURS_DEFAULT, help="how long")

    def main(self) -> int:
        """0 if all went well, 1 with one line on standard error if not."""
        arguments = self._parser.parse_args()
        try:
            return int(arguments.verb(arguments, self._settings()))
        except Failure as failure:
            for line in failure.details:
                sys.stderr.write(f"  {line}\n")
            complain(str(failure))
        except OSError as error:
            complain(
                f"{error.filename or 'the system'}: {error.strerror or error}; correct that first"
            )
        except (ValidationError, ValueError) as error:
            complain(f"a setting is malformed: {one_line(error)}")
        except KeyboardInterrupt:
            complain("interrupted; `make status` shows what runs, `make down` stops it")
        return 1


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
