"""What runs once, inside a stack of containers: secrets, databases, rights, tokens."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import asyncpg

from containers import access, secrets, server_files
from fetching.errors import Failure
from local_stack import issuer
from local_stack.postgres import establish
from local_stack.progress import complain, tell
from local_stack.republishing import delete_topics

FOLDER = Path(os.environ.get("SECRETS_ROOT", "/secrets"))
TLS = "HOMETOWN_TLS"
BROKERS = "kafka:9094,kafka-2:9094,kafka-3:9094"
"""The listener for brokers and for clients with a certificate."""


def main() -> int:
    """0 if all went well, 1 with one line on standard error if not."""
    parser = argparse.ArgumentParser(prog="containers.once", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser(
        "secrets", help="make the secrets that are missing, and copy settings of servers"
    )
    rotated = verbs.add_parser("rotate", help="make secrets again that are used up")
    rotated.add_argument("what", choices=issuer.ROTATED)
    rotated.add_argument("--hours", type=float, default=issuer.HOURS_DEFAULT)
    verbs.add_parser("databases", help="make the databases and roles that are missing")
    verbs.add_parser("access", help="make the users of Kafka and their rights")
    verbs.add_parser("delete-topics", help="delete the topics of events, in a cluster")
    issued = verbs.add_parser("token", help="a token for calls to the APIs")
    issued.add_argument("role", nargs="?", default="", help=", ".join(issuer.ROLES))
    issued.add_argument("--subject", help="who calls; a user's id for a user")
    arguments = parser.parse_args()
    try:
        if arguments.verb == "secrets":
            secrets.write(FOLDER, tls=has_tls())
            server_files.copy(FOLDER)
        elif arguments.verb == "rotate":
            if arguments.what == issuer.KEY:
                issuer.rotate(secrets.keys(FOLDER), hours=arguments.hours)
            secrets.write(FOLDER, tls=has_tls(), renewed=arguments.what == issuer.CERTIFICATES)
        elif arguments.verb == "databases":
            ca_file = secrets.keys(FOLDER).authority if has_tls() else None
            passwords = secrets.passwords_of(FOLDER)
            asyncio.run(establish(secrets.POSTGRES, passwords, ca_file))
        elif arguments.verb == "access":
            access.grant(BROKERS, FOLDER / "administrator", secrets.passwords_of(FOLDER))
        elif arguments.verb == "delete-topics":
            delete_topics(access.administrator(BROKERS, FOLDER / "administrator"))
        else:
            tell(issuer.token(secrets.keys(FOLDER), arguments.role, arguments.subject))
    except (Failure, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        complain(str(error))
        return 1
    return 0


def has_tls() -> bool:
    """Raises Failure if the setting is neither `on` nor empty."""
    setting = os.environ.get(TLS, "")
    if setting not in ("on", ""):
        raise Failure(f"{TLS}={setting}: set it to on, or remove it")
    return setting == "on"


if __name__ == "__main__":
    sys.exit(main())
