"""A part of the local stack: one service with the servers that it needs."""

from local_stack.stack_spec import StackSpec, Tier


def select_service(spec: StackSpec, name: str) -> StackSpec:
    """The foundations of a stack, and of its services only `name`, such as "users"."""
    return StackSpec(
        processes=tuple(
            process
            for process in spec.processes
            if process.tier is Tier.FOUNDATION or process.name.startswith(f"{name}-")
        ),
        preparations=tuple(
            each for each in spec.preparations if each.name in (f"{name} tables", "topics")
        ),
    )
