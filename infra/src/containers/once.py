"""What runs once, inside a stack of containers: `secrets|databases|access|token`."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import asyncpg

from containers import access, secrets
from fetching.errors import Failure
from local_stack import issuer
from local_stack.postgres import establish
from local_stack.progress import complain, tell

FOLDER = Path(os.environ.get("SECRETS_ROOT", "/secrets"))
BROKERS = "kafka:9094,kafka-2:9094,kafka-3:9094"
"""The listener for brokers and for clients with a certificate."""


def main() -> int:
    """0 if all went well, 1 with one line on standard error if not."""
    parser = argparse.ArgumentParser(prog="containers.once", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("secrets", help="make the secrets that are missing")
    verbs.add_parser("databases", help="make the databases and roles that are missing")
    verbs.add_parser("access", help="make the users of Kafka and their rights")
    issued = verbs.add_parser("token", help="a token for calls to the APIs")
    issued.add_argument("role", nargs="?", default="", help=", ".join(issuer.ROLES))
    issued.add_argument("--subject", help="who calls; a user's id for a user")
    arguments = parser.parse_args()
    try:
        if arguments.verb == "secrets":
            secrets.write(FOLDER)
        elif arguments.verb == "databases":
            asyncio.run(establish(secrets.POSTGRES, secrets.passwords_of(FOLDER)))
        elif arguments.verb == "access":
            access.grant(BROKERS, FOLDER / "administrator", secrets.passwords_of(FOLDER))
        else:
            tell(issuer.token(secrets.keys(FOLDER), arguments.role, arguments.subject))
    except (Failure, OSError, asyncpg.PostgresError) as error:
        complain(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
