"""A plan as text: what each record costs, what is needed, and the figures behind it."""

from collections.abc import Iterator

from benchmarks.capacity.plan import CORE_SHARE_MAX, Plan
from benchmarks.series import format_number
from local_stack import progress


def format_plan(plan: Plan) -> str:
    return "\n\n".join(
        (describe_load(plan), table_of_steps(plan), table_of_needs(plan), list_figures(plan))
    )


def describe_load(plan: Plan) -> str:
    load = plan.load
    return (
        f"{load.rate:,} records a second on average, {load.peak:,} at the peak;"
        f" {load.size:,} bytes each,\nkept for {load.days} days with {load.replicas} replicas,"
        f" read by {load.readers} consumer groups"
    )


def table_of_steps(plan: Plan) -> str:
    header = (
        *("step", "CPU of a record", f"cores at {plan.load.rate:,}/s"),
        *(f"at {plan.load.peak:,}/s", f"{CORE_SHARE_MAX:.0%} busy at the peak"),
    )
    rows = [
        (
            step.name,
            f"{format_number(step.microseconds)} µs",
            format_number(step.count_cores(plan.load.rate)),
            format_number(step.count_cores(plan.load.peak)),
            f"{step.count_units(plan.load.peak):,} {step.unit}",
        )
        for step in plan.steps
    ]
    return progress.table(header, rows)


def table_of_needs(plan: Plan) -> str:
    rows = [(need.what, need.amount, need.reason) for need in plan.needs]
    return progress.table(("needed", "", "because"), rows)


def list_figures(plan: Plan) -> str:
    return "\n".join(("measured:", *iterate_figures(plan)))


def iterate_figures(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        for cost in step.costs:
            yield f"  {step.name}: {cost.reason}"
