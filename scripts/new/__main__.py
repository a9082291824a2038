"""python -m scripts.new: add a service, or something to one, with its tests and documents."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from libcst import ParserSyntaxError

from scripts.changes import CHECKOUT, report, run_command
from scripts.new.addition import Addition, add, show
from scripts.new.aggregates import find_aggregate
from scripts.new.event_versions import plan_event_version
from scripts.new.reactions import plan_reaction
from scripts.new.service import plan_service
from scripts.new.things import plan_command, plan_event, plan_read_model
from scripts.new.words import NewError, parse_words
from shared.runtime.declarations import DeclarationError, Declarations, load_declarations

Given = Mapping[str, str]
"""What is asked for: the arguments that have a value, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """What can be added; `needs` are its arguments, as in `example`, and `can_have` others."""

    title: str
    example: str
    needs: Sequence[str]
    plan: Callable[[Path, Declarations, Given], Addition]
    can_have: Sequence[str] = ()


def service(root: Path, declared: Declarations, given: Given) -> Addition:
    return plan_service(root, declared, parse_words(given["name"], given.get("singular")))


def command(root: Path, declared: Declarations, given: Given) -> Addition:
    aggregate = find_aggregate(root, declared, given["of"])
    return plan_command(root, aggregate, given["name"], given["event"])


def event(root: Path, declared: Declarations, given: Given) -> Addition:
    return plan_event(root, find_aggregate(root, declared, given["of"]), given["name"])


def event_version(root: Path, declared: Declarations, given: Given) -> Addition:
    return plan_event_version(root, declared, given["name"])


def reaction(root: Path, declared: Declarations, given: Given) -> Addition:
    aggregate = find_aggregate(root, declared, given["of"])
    return plan_reaction(root, declared, aggregate, given["name"], given["event"], given["on"])


def read_model(root: Path, declared: Declarations, given: Given) -> Addition:
    return plan_read_model(root, find_aggregate(root, declared, given["of"]), given["name"])


THINGS = {
    "service": Thing(
        title="a service in its own folder, in the shape of users-svc",
        example="name=payments",
        needs=("name",),
        can_have=("singular",),
        plan=service,
    ),
    "command": Thing(
        title="a command of an aggregate, with its route and its event",
        example="name=suspend event=suspended of=user",
        needs=("name", "event", "of"),
        plan=command,
    ),
    "event": Thing(
        title="an event of an aggregate, which no command leads to yet",
        example="name=suspended of=user",
        needs=("name", "of"),
        plan=event,
    ),
    "event-version": Thing(
        title="the next version of an event, with an upcast for each of its readers",
        example="name=order-rejected",
        needs=("name",),
        plan=event_version,
    ),
    "reaction": Thing(
        title="a command of an aggregate to which an event of another service leads",
        example="name=refund event=refunded on=order-cancelled of=payment",
        needs=("name", "event", "on", "of"),
        plan=reaction,
    ),
    "read-model": Thing(
        title="a table that follows the events of an aggregate, with its route",
        example="name=activity of=user",
        needs=("name", "of"),
        plan=read_model,
    ),
}
ARGUMENTS = ("name", "of", "event", "on", "singular")


def main() -> int:
    """0 if it was added; 1 with one line on standard error, and nothing was changed."""
    parser = argparse.ArgumentParser(
        prog="make new",
        description="Add a service, or something to one, with its tests, samples and documents.",
        epilog="Without a thing, list them. Commit your work before, so that git can undo it.",
    )
    parser.add_argument("--thing", default="", help=", ".join(THINGS))
    parser.add_argument(
        "--name", default="", help="its name, such as payments, suspend or activity"
    )
    parser.add_argument("--of", default="", help="the aggregate that it belongs to, such as user")
    parser.add_argument("--event", default="", help="of a command or a reaction, such as suspended")
    parser.add_argument("--on", default="", help="the event that leads to it: order-cancelled")
    parser.add_argument("--singular", default="", help="where it is not the name without its s")
    parser.add_argument("--dry-run", action="store_true", help="show what would be added")
    arguments = parser.parse_args()
    given = {name: value for name in ARGUMENTS if (value := getattr(arguments, name))}
    return run_command(lambda: make(arguments.thing, given, is_dry=arguments.dry_run))


def make(name: str, given: Given, *, is_dry: bool) -> int:
    if not name and not given:
        list_things()
        return 0
    addition = plan(name, given)
    if is_dry:
        show(CHECKOUT, addition, report)
    else:
        add(CHECKOUT, addition, report)
    return 0


def list_things() -> None:
    for name, thing in THINGS.items():
        report(f"  {name:13} {thing.title}: make new thing={name} {thing.example}")


def plan(name: str, given: Given) -> Addition:
    """Raises ChangeError."""
    if name not in THINGS:
        raise NewError(f"thing={name} is none; there are: {', '.join(THINGS)}")
    thing = THINGS[name]
    wrong = [each for each in thing.needs if each not in given] + [
        each for each in given if each not in (*thing.needs, *thing.can_have)
    ]
    if wrong:
        state = "is missing" if wrong[0] in thing.needs else f"is not for thing={name}"
        raise NewError(f"{wrong[0]}= {state}: make new thing={name} {thing.example}")
    try:
        declared = load_declarations(CHECKOUT)
    except DeclarationError as error:
        raise NewError(f"{error}; correct that first") from None
    try:
        return thing.plan(CHECKOUT, declared, given)
    except (SyntaxError, ParserSyntaxError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise NewError(f"a module of the service is no Python ({reason})") from None


if __name__ == "__main__":
    sys.exit(main())
