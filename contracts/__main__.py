"""python -m contracts write | check [--against FILE] | release"""

import argparse
import sys
from pathlib import Path

from contracts.compatibility import broken_promises
from contracts.contract_files import (
    RELEASED,
    ROOT,
    Promises,
    SampleError,
    begin_sample,
    generated,
    missing_samples,
    promises_of_the_code,
    release,
    released,
    stale,
    text_of,
    write,
    write_text,
)
from contracts.views import misreadings
from shared.eventsourcing.codec import FIRST_VERSION


def run_write() -> int:
    """Create the missing samples, and generate the files from the code."""
    promises = promises_of_the_code(released())
    try:
        begun = [
            (path, begin_sample(path, codec, schema))
            for path, (codec, schema) in missing_samples(ROOT, promises).items()
        ]
    except SampleError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path, example in begun:
        write_text(path, text_of(example))
        hint = ": edit it to realistic values" if path.stem.endswith(f".v{FIRST_VERSION}") else ""
        sys.stdout.write(f"created {path.relative_to(ROOT.parent)}{hint}\n")
    for name in write(ROOT, generated(promises, ROOT)):
        sys.stdout.write(f"wrote contracts/{name}\n")
    for sentence in [*broken_promises(released(), promises), *misreadings()]:
        sys.stdout.write(f"incompatible: {sentence}\n")
    return 0


def not_written(root: Path, promises: Promises) -> list[str]:
    """The files that do not match the code, each with what to do."""
    missing = [str(path.relative_to(root.parent)) for path in missing_samples(root, promises)]
    wrong = (
        [] if missing else [f"contracts/{name}" for name in stale(root, generated(promises, root))]
    )
    return [f"{name}: does not match the code: run `make contracts`" for name in missing + wrong]


def run_check(against: Path) -> int:
    """Check the code against the released promises, the readers' views and the generated files."""
    promises = promises_of_the_code(released())
    problems = [
        *broken_promises(released(against), promises),
        *misreadings(),
        *not_written(ROOT, promises),
    ]
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


def run_release() -> int:
    """Record the current contracts as released, unless they break an older promise."""
    problems = release(RELEASED, promises_of_the_code(released()))
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="contracts", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("write", help=run_write.__doc__)
    check = commands.add_parser("check", help=run_check.__doc__)
    check.add_argument("--against", type=Path, default=RELEASED, help="promises of another release")
    commands.add_parser("release", help=run_release.__doc__)
    arguments = parser.parse_args()
    match arguments.command:
        case "write":
            return run_write()
        case "check":
            return run_check(arguments.against)
        case _:
            return run_release()


if __name__ == "__main__":
    sys.exit(main())
