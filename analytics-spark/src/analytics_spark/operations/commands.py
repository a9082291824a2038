"""What people may say to the commands for them; apart from their rooms, which need Spark."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]

PARTITIONS_MAX = 1024


def add_archive(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "write Java's archive of Spark's classes, with which the job starts seconds sooner"
    parser = verbs.add_parser("archive", help=text, description=text)
    parser.add_argument("file", type=Path, help="what SPARK_CLASS_ARCHIVE of the job will be")
    parser.add_argument("--jars", type=Path, required=True, help="its SPARK_JARS_DIR")
    return parser


def add_export(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "write the cells of final hours to Parquet files, those that changed"
    parser = verbs.add_parser("export", help=text, description=text)
    parser.add_argument("--to", type=Path, help="the folder; EXPORT_DIR by default")
    return parser


def add_reconcile(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "compare the final hours with the event stores; ends with 1 when a cell differs"
    parser = verbs.add_parser("reconcile", help=text, description=text)
    parser.add_argument("--hours", type=int, help="how many, the last ones; a week by default")
    return parser


def add_rescale(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "split the job's state into another number of shuffle partitions, while it does not run"
    parser = verbs.add_parser("rescale", help=text, description=text)
    parser.add_argument("partitions", type=number_of_partitions, help="as many as cores")
    return parser


def number_of_partitions(text: str) -> int:
    number = int(text)
    if not 1 <= number <= PARTITIONS_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to {PARTITIONS_MAX}")
    return number


def add_reprocess(verbs: "Verbs") -> argparse.ArgumentParser:
    text = "make all cells anew from the topics beside the live ones, and compare"
    parser = verbs.add_parser("reprocess", help=text, description=text)
    acts = parser.add_mutually_exclusive_group()
    acts.add_argument("--switch", action="store_true", help="show the new cells after that")
    acts.add_argument("--roll-back", action="store_true", help="only: show those of before again")
    acts.add_argument("--drop", action="store_true", help="only: remove what is not shown")
    parser.add_argument("--anew", action="store_true", help="forget a rebuild that was not shown")
    return parser
