"""What a statement reads, by its executed plan."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from shared.runtime.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """One node of a plan that reads a table, and how many rows it touched."""

    kind: str
    index: str | None
    rows: float


async def prepare(connection: Connection, statement: str) -> str:
    """Prepare a statement; its name."""
    name = f"explained_{uuid4().hex}"
    await connection.execute(f"PREPARE {name} AS {statement}")
    return name


async def explain(connection: Connection, name: str, arguments: str) -> list[Scan]:
    """Run a prepared statement, and see what it read."""
    text = await connection.fetchval(
        f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING off, BUFFERS off) EXECUTE {name} ({arguments})"
    )
    return list(scans_in(json.loads(text)[0]["Plan"]))


def scans_in(node: dict[str, Any]) -> Iterator[Scan]:
    if "Relation Name" in node:
        touched = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        yield Scan(
            kind=node["Node Type"],
            index=node.get("Index Name"),
            rows=touched * node["Actual Loops"],
        )
    for child in node.get("Plans", ()):
        yield from scans_in(child)


def count_rows(scans: Sequence[Scan]) -> float:
    return sum(scan.rows for scan in scans)
