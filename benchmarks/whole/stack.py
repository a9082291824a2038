"""The whole stack as it is measured: one order of ten is traced, one client stands for many."""

from collections.abc import Mapping
from dataclasses import replace

from local_stack.hometown import HOMETOWN
from local_stack.jaeger import JAEGER
from local_stack.readiness import wait_until_ready
from local_stack.stack_spec import Process, StackContext, StackSpec, Tier

SAMPLED_SHARE = "0.1"
SETTINGS = {
    "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
    "OTEL_TRACES_SAMPLER_ARG": SAMPLED_SHARE,
    # The limits are for one caller, and for the connections of usual ones.
    "HTTP_REQUESTS_PER_SECOND_MAX": "1000000",
    "HTTP_CONNECTIONS_MAX": "5000",
}
JAEGER_SECONDS_MAX = 30


def set_variables(spec: StackSpec, variables: Mapping[str, str]) -> StackSpec:
    """The same stack, with variables in the environment of each service."""

    def extend(process: Process) -> Process:
        def environment(context: StackContext) -> Mapping[str, str]:
            return {**process.environment(context), **variables}

        return replace(process, environment=environment)

    return replace(
        spec,
        processes=tuple(
            extend(each) if each.tier is Tier.SERVICE else each for each in spec.processes
        ),
    )


async def require_jaeger(context: StackContext) -> None:
    """Wait until Jaeger receives spans, in a stack that has one.

    Raises:
        Failure: it does not answer; its binary may still be built.
    """
    if "otlp" in context.ports:
        await wait_until_ready(context, JAEGER, JAEGER_SECONDS_MAX)


MEASURED = set_variables(HOMETOWN, SETTINGS)
