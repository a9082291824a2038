"""What people may say to the commands for them; apart from their rooms, which need Spark."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]


def add_reprocess(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "make all cells anew from the topics beside the live ones, and compare"
    parser = verbs.add_parser("reprocess", help=text, description=text)
    acts = parser.add_mutually_exclusive_group()
    acts.add_argument("--switch", action="store_true", help="show the new cells after that")
    acts.add_argument("--roll-back", action="store_true", help="only: show those of before again")
    acts.add_argument("--drop", action="store_true", help="only: remove what is not shown")
    parser.add_argument("--anew", action="store_true", help="forget a rebuild that was not shown")
    return parser
