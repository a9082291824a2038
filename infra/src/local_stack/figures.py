"""What a verb measured, written in the one form that all benchmarks of Hometown share."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from local_stack.run_folder import RunFolder, write_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number with its unit, and how it compares with what `ratio_to` names."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    ratio_to: str | None = None


def write(folder: RunFolder, verb: str, figures: Sequence[Figure]) -> Path:
    """Replace `bench/<verb>.json` of the run folder."""
    path = folder / "bench" / f"{verb}.json"
    path.parent.mkdir(exist_ok=True)
    write_json(path, [asdict(figure) for figure in figures])
    return path
