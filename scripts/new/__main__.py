"""python -m scripts.new payments: a new service in its own folder, payments-svc."""

import argparse
import sys

from scripts.changes import CHECKOUT, report, run_command
from scripts.new.service import make_service
from scripts.new.words import parse_words

NEXT_STEPS = """\
{folder} is ready: {package}, with its own topic {plural}.v1, database and scopes.
Next:
  make up                          its API listens on port {port}
  curl -s localhost:{port}/v1/{plural} -H 'Content-Type: application/json' \\
    -H "Authorization: Bearer $(make -s token as=clerk)" -d '{{"name": "first"}}'
  make check                       format, lint, types, imports, contracts and unit tests
To change:
  {source}/{singular}.py   the rules: decide and evolve
  {source}/worker.py   the reactions to messages
  {folder}/service.toml   ports, topics, scopes and roles
docs/new-service.md has each step up to an event of your own in Jaeger.
"""


def main() -> int:
    """0 if the service was made; 1 with one line on standard error, and nothing was changed."""
    parser = argparse.ArgumentParser(
        prog="make new-service name=NAME",
        description="Make a service in its own folder, in the shape of users-svc.",
    )
    parser.add_argument("name", help="its name, a plural such as payments")
    parser.add_argument("--singular", help="one of them, where it is not the name without its s")
    arguments = parser.parse_args()
    return run_command(lambda: make(arguments.name, arguments.singular))


def make(name: str, singular: str | None) -> int:
    words = parse_words(name, singular)
    port = make_service(CHECKOUT, words, report=report)
    report(
        NEXT_STEPS.format(
            folder=words.folder,
            package=words.package,
            plural=words.plural,
            singular=words.singular,
            port=port,
            source=f"{words.folder}/src/{words.package}",
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
