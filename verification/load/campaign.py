"""Realistic load at a given rate, then a comparison of all totals with the expected ones.

make load rate=50 seconds=60
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import uvloop

from fetching.errors import Failure
from local_stack import figures, progress
from local_stack.figures import Figure
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from shared.runtime.identifiers import new_id
from test_support.system.clients import Hometown, Json
from verification.load import compare, report
from verification.load.actions import Planned
from verification.load.driver import Run, drive
from verification.load.free_hours import find_free_window
from verification.load.ledger import create_ledger
from verification.load.plan import BURST_MAX, Plan, Scale, create_plan, place_burst
from verification.load.sender import open_sender
from verification.load.settle import (
    NotSettled,
    Settled,
    is_late,
    wait_until_idle,
    wait_until_settled,
)
from verification.load.status_line import StatusLine
from verification.load.window import HOUR, NoWindow, Window

SHOWN_MAX = 40
"""Differences that are listed; more are only counted."""
LOOK_SECONDS = 0.5
LATENESS_SECONDS = 7200
ENOUGH = Scale(seed=1, rate=50, seconds=60, users=200, items=40, late=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run, the status before it, and what was observed when the system had become idle."""

    plan: Plan
    window: Window
    run: Run
    before: Json
    settled: Settled
    quiet_seconds: float

    @property
    def too_late(self) -> int:
        """Orders that analytics did not count, because they came too late."""
        after = self.settled.observation.status
        return int(after["late_orders"] - self.before["late_orders"])


def main() -> None:
    arguments = parser().parse_args()
    scale = create_scale(arguments)
    folder = Settings().run_dir
    try:
        hometown = Hometown.of_run_folder(folder)
        story = load(hometown, scale, gap=arguments.gap, lateness=arguments.lateness)
    except FileNotFoundError:
        sys.exit("hometown: nothing runs here; start it with: make up")
    except (Failure, NoWindow, NotSettled) as failure:
        sys.exit(f"hometown: {failure}")
    except httpx.HTTPError as error:
        sys.exit(f"hometown: the load did not begin: {error} (see: make status, make logs)")
    except KeyboardInterrupt:
        sys.exit("hometown: stopped; what was sent remains, and nothing was compared")
    show(story, scale, folder)
    sys.exit(1 if story.settled.differences else 0)


def load(
    hometown: Hometown,
    scale: Scale,
    *,
    gap: datetime | None = None,
    lateness: timedelta = timedelta(seconds=LATENESS_SECONDS),
) -> Story:
    """Run a plan and wait until all of it is counted.

    Raises:
        NoWindow: there is no past hour left without orders.
        NotSettled: the system does not become idle.
        httpx.HTTPError: the system was unavailable at the beginning.
    """
    before = wait_until_idle(hometown)
    window = (
        Window(gap=gap, lateness=lateness) if gap else find_free_window(hometown, before, lateness)
    )
    plan = create_plan(scale, window)
    progress.tell(
        f"{len(plan.actions)} actions, {scale.rate} a second, seed {scale.seed};"
        f" orders of {window.begins_at:%Y-%m-%d %H:%M} to {window.ends_at:%H:%M}"
    )
    run = Run(keys=f"load/{new_id()}")
    uvloop.run(drive_with_progress(hometown, run, plan.actions))
    if plan.late:
        wait_until_late(hometown, run, plan, window)
        uvloop.run(drive_with_progress(hometown, run, plan.late))
    answered_at = time.monotonic()
    settled = wait_until_settled(hometown, run, window, before, StatusLine().show)
    return Story(
        plan=plan,
        window=window,
        run=run,
        before=before,
        settled=settled,
        quiet_seconds=settled.quiet_at - answered_at,
    )


def wait_until_late(hometown: Hometown, run: Run, plan: Plan, window: Window) -> None:
    """Wait until orders of the gap are late. The watermark advances with the batch after its
    orders, so more actions can be needed.

    Raises:
        NotSettled: the watermark does not advance.
    """
    for nudge in plan.nudges:
        if is_late(wait_until_idle(hometown), window.late_before):
            return
        uvloop.run(drive_with_progress(hometown, run, [nudge]))
    raise NotSettled(f"the watermark does not advance to {window.late_before}")


async def drive_with_progress(hometown: Hometown, run: Run, planned: Sequence[Planned]) -> None:
    """`drive`, with a progress line."""
    async with open_sender(hometown) as sender:
        showing = asyncio.create_task(show_progress(run, len(run.outcomes) + len(planned)))
        try:
            await drive(run, sender, planned)
        finally:
            showing.cancel()


async def show_progress(run: Run, count: int) -> None:
    line = StatusLine()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        begun, answered = len(run.requests), len(run.outcomes)
        late = sum(outcome.was_begun_late for outcome in run.outcomes)
        text = f"{begun} of {count} begun, {answered} answered, {begun - answered} under way"
        line.show(f"{text}, {late} begun late" if late else text)


def show(story: Story, scale: Scale, folder: Path) -> None:
    """The tables, the differences if there are any, and the figures in the run folder."""
    outcomes, wrong = story.run.outcomes, story.settled.differences
    planned = {action.number for action in story.plan.actions}
    kinds = report.group_by_kind(outcomes)
    traffic = [each for each in outcomes if each.planned.number in planned]
    pace, burst = report.measure_pace(traffic), place_burst(scale)
    drain = report.measure_drain(traffic, burst) if burst else None
    progress.tell("")
    progress.tell(report.table(kinds))
    progress.tell("")
    progress.tell(pace.text, progress.Tone.PLAIN if pace.was_kept else progress.Tone.BAD)
    if drain:
        progress.tell(drain.text)
    for line in summary(story):
        progress.tell(line)
    for difference in wrong[:SHOWN_MAX]:
        progress.tell(f"  {difference}", progress.Tone.BAD)
    figures.write(
        RunFolder(folder),
        "load",
        [
            *report.create_figures(kinds, pace),
            *(report.create_burst_figures(drain) if drain else ()),
            Figure(name="last answer until quiet", value=round(story.quiet_seconds, 2), unit="s"),
            Figure(name="orders too late", value=story.too_late, unit="1"),
            Figure(name="differences", value=len(wrong), unit="1"),
        ],
    )


def summary(story: Story) -> list[str]:
    seen = story.settled.observation
    ledger = create_ledger(story.run, seen.orders, story.window.begins_at)
    ended = report.count_endings(ledger)
    alike, repeated = report.count_repeats(story.run.outcomes)
    hours = compare.count_hours(story.window.hours, ledger)
    wrong = len(story.settled.differences)
    return [
        f"orders: {', '.join(f'{count} {status}' for status, count in sorted(ended.items()))};"
        f" {story.too_late} were too late to be counted",
        f"repeats: {alike} of {repeated} answered as before",
        f"quiet {story.quiet_seconds:.1f} s after the last answer",
        f"compared: {hours} hours with purchases in 5 splits, credit of {len(seen.users)} users,"
        f" {len(seen.orders)} orders; differences: {wrong}",
    ]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m verification.load", description=(__doc__ or "").partition("\n")[0]
    )
    for name, what in {
        "seed": "the same seed makes the same plan",
        "rate": "actions a second",
        "seconds": "how long actions are sent",
        "users": "how many exist at the beginning",
        "items": "how many exist at the beginning",
        "late": "late orders, placed at the end, that must not be counted",
        "burst": f"times the rate in the middle of the run, at most {BURST_MAX}",
    }.items():
        least = 0 if name in ("seed", "late") else 1
        value, most = getattr(ENOUGH, name), BURST_MAX if name == "burst" else None
        made.add_argument(
            f"--{name}", type=parse_between(least, most), default=value, help=f"{what} ({value})"
        )
    made.add_argument(
        "--gap", type=parse_hour, help="an unused hour, before the hours of the orders"
    )
    made.set_defaults(
        lateness=timedelta(seconds=float(os.environ.get("LATENESS_SECONDS", LATENESS_SECONDS)))
    )
    return made


def parse_between(least: int, most: int | None = None) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"is less than {least}")
        if most is not None and int(text) > most:
            raise argparse.ArgumentTypeError(f"is more than {most}")
        return int(text)

    return number


def parse_hour(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None or instant.timestamp() % HOUR.total_seconds():
        raise argparse.ArgumentTypeError("is not an hour such as 2016-11-12T00:00Z")
    return instant.astimezone(UTC)


def create_scale(arguments: argparse.Namespace) -> Scale:
    return Scale(
        seed=arguments.seed,
        rate=arguments.rate,
        seconds=arguments.seconds,
        users=arguments.users,
        items=arguments.items,
        late=arguments.late,
        burst=arguments.burst,
    )
