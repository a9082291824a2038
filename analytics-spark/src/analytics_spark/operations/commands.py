"""The command-line arguments, in a module of their own: the commands import Spark."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]

PARTITIONS_MAX = 1024


def add_aot_cache(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "write Java's cache of Spark's classes, with which the job starts seconds sooner"
    parser = verbs.add_parser("aot-cache", help=text, description=text)
    parser.add_argument("file", type=Path, help="the path that SPARK_AOT_CACHE of the job names")
    return parser


def add_export(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "write the cells of final hours that changed to Parquet files"
    parser = verbs.add_parser("export", help=text, description=text)
    parser.add_argument(
        "--records",
        action="store_true",
        help="write all records of the topics instead, a file for each topic and day",
    )
    parser.add_argument(
        "--to",
        type=Path,
        help="the folder; default: EXPORT_DIR, or for records the folder `records` next to it",
    )
    return parser


def add_reconcile(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "compare the final hours with the event stores; exit status 1 when a cell differs"
    parser = verbs.add_parser("reconcile", help=text, description=text)
    parser.add_argument(
        "--hours", type=int, help="how many of the last hours; default: RECONCILE_HOURS_MAX, a week"
    )
    return parser


def add_rescale(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "change the number of partitions of the job's state, while the job is stopped"
    parser = verbs.add_parser("rescale", help=text, description=text)
    parser.add_argument(
        "partitions", type=number_of_partitions, help="the new number, at best the number of cores"
    )
    return parser


def number_of_partitions(text: str) -> int:
    number = int(text)
    if not 1 <= number <= PARTITIONS_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {PARTITIONS_MAX}")
    return number


def add_reprocess(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "rebuild all cells from the topics next to the live ones, and compare"
    parser = verbs.add_parser("reprocess", help=text, description=text)
    acts = parser.add_mutually_exclusive_group()
    acts.add_argument("--switch", action="store_true", help="then show the new cells")
    acts.add_argument("--roll-back", action="store_true", help="only show the previous cells again")
    acts.add_argument("--drop", action="store_true", help="only remove cells that are not shown")
    parser.add_argument(
        "--from-scratch", action="store_true", help="discard a rebuild that was never shown"
    )
    return parser
