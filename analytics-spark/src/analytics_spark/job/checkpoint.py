"""The files of a checkpoint: whose query it is, and what a batch reads. Spark writes them."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

Offsets = dict[str, dict[str, int]]
"""End offsets (not included) by topic and partition."""

Ranges = dict[str, dict[str, list[int]]]
"""[first, end] by topic and partition, end not included."""

VERSION = "v1"
"""The first line of the files of a batch."""


class DamagedCheckpoint(Exception):
    """A file of a checkpoint cannot be read; the message names it and the repair."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A query's checkpoint in a local folder, which need not exist yet. Nothing is cached."""

    path: Path

    @property
    def location(self) -> str:
        """The path for Spark: Hadoop takes an escape in a URI for a part of a name."""
        return f"file://{self.path.absolute()}"

    @property
    def query_id(self) -> str | None:
        """The id of the query that owns the checkpoint; None before its first start.

        Raises:
            DamagedCheckpoint: the file is not whole.
        """
        metadata = self.path / "metadata"
        if not metadata.exists():
            return None
        try:
            identity: str = json.loads(metadata.read_bytes())["id"]
        except (ValueError, KeyError):
            raise DamagedCheckpoint(
                f"{metadata} is not whole, as a power cut leaves a file: run `make republish`"
            ) from None
        return identity

    def drop_torn(self) -> None:
        """Remove the newest plan, and the newest note of a batch as done, that is not whole.

        So a power cut leaves it: Spark does not sync its files. Without its plan a batch is planned
        again, without its note it runs again, as if Spark had been killed before it wrote the file.
        If the one before it is not whole either, that stays, and Spark fails. No query may use the
        checkpoint meanwhile.
        """
        logs = ((self.path / "offsets", self._is_plan), (self.path / "commits", self._is_note))
        for folder, is_whole in logs:
            newest = newest_in(folder)
            torn, before = folder / str(newest), folder / str(newest - 1)
            if newest < 0 or is_whole(newest) or (before.exists() and not is_whole(newest - 1)):
                continue
            log.warning("%s is not whole: its batch is done again", torn)
            torn.unlink()

    def _is_plan(self, batch_id: int) -> bool:
        lines, before = self._read_plan(batch_id), self._read_plan(batch_id - 1)
        texts = [line for line in lines[1:] if line != "-"]
        return are_whole(lines, texts) and len(lines) >= max(3, len(before))

    def _is_note(self, batch_id: int) -> bool:
        lines = read_lines(self.path / "commits" / str(batch_id))
        return are_whole(lines, lines[1:]) and len(lines) == 2

    @property
    def newest_planned(self) -> int:
        """The newest batch that Spark has planned; -1 for none."""
        return newest_in(self.path / "offsets")

    @property
    def newest_done(self) -> int:
        """The newest batch that Spark noted as done; -1 for none."""
        return newest_in(self.path / "commits")

    @property
    def newest_sunk(self) -> int:
        """The newest batch that is done and went through the sink; -1 for none."""
        batch_id = self.newest_done
        while self.is_rescale(batch_id):
            batch_id -= 1
        return batch_id

    def get_partitions(self, batch_id: int) -> int | None:
        """Into how many partitions the state is split for a batch; None for an unknown batch.

        Spark runs a batch with the settings that it was planned with, whatever they are now.
        """
        lines = self._read_plan(batch_id)
        if len(lines) < 2:
            return None
        try:
            planned: dict[str, dict[str, str]] = json.loads(lines[1])
        except ValueError:
            return None  # as a power cut leaves it: `drop_torn` removes it
        number = planned["conf"].get("spark.sql.shuffle.partitions")
        return int(number) if number else None

    def is_rescale(self, batch_id: int) -> bool:
        """Whether a batch only changed the number of partitions: it read nothing, and the sink has
        not seen it."""
        before, after = (self.get_partitions(each) for each in (batch_id - 1, batch_id))
        return None not in (before, after) and before != after

    def get_planned_at(self, batch_id: int) -> float | None:
        """When Spark planned a batch, in seconds since 1970; None for an unknown batch."""
        lines = self._read_plan(batch_id)
        if len(lines) < 2:
            return None
        milliseconds: int | None = json.loads(lines[1]).get("batchTimestampMs")
        return milliseconds / 1000 if milliseconds else None

    def get_end_offsets(self, batch_id: int) -> Offsets:
        """Where a batch ends; empty for a batch that is not (or no longer) there."""
        merged: Offsets = {}
        for line in self._read_plan(batch_id)[2:]:
            if line != "-":
                merged |= json.loads(line)
        return merged

    def get_ranges(self, batch_id: int) -> Ranges:
        """What a batch reads."""
        before, after = self.get_end_offsets(batch_id - 1), self.get_end_offsets(batch_id)
        return {
            topic: {
                partition: [before.get(topic, {}).get(partition, 0), end]
                for partition, end in partitions.items()
            }
            for topic, partitions in after.items()
        }

    def _read_plan(self, batch_id: int) -> list[str]:
        """Lines of the file that Spark writes before it runs a batch; empty when there is none.

        They are a version, JSON about the batch, and a line for each source: its end offsets as
        JSON, or "-" when the source never had a record.
        """
        plan = self.path / "offsets" / str(batch_id)
        return read_lines(plan) if plan.exists() else []


def read_lines(path: Path) -> list[str]:
    """Of a file that can have any bytes."""
    return path.read_text(errors="replace").splitlines()


def are_whole(lines: list[str], texts: list[str]) -> bool:
    """Whether lines begin with the version, and all of `texts` are JSON."""
    try:
        for text in texts:
            json.loads(text)
    except ValueError:
        return False
    return lines[:1] == [VERSION]


def newest_in(log: Path) -> int:
    """The highest number of a file in a folder with one file for each batch; -1 for none."""
    names = (entry.name for entry in log.glob("*"))
    return max((int(name) for name in names if name.isdecimal()), default=-1)
