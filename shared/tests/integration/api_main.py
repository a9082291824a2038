"""An API as a process of its own, for tests that replace it. `GET /slow` responds when it stops."""

import asyncio

from fastapi import FastAPI
from starlette.responses import PlainTextResponse

from shared.runtime import processes, telemetry
from shared.runtime.settings import ProcessSettings
from shared.web import api_process
from shared.web.health import health_routes


def create_app(stopping: asyncio.Event) -> FastAPI:
    app = FastAPI(telemetry={"tracing": False, "metrics": False, "logs": False})
    app.state.is_stopping = False

    @app.get("/fast")
    async def fast() -> PlainTextResponse:
        return PlainTextResponse("fast")

    @app.get("/traced")
    async def traced() -> PlainTextResponse:
        with telemetry.tracer.start_as_current_span("the last moment"):
            return PlainTextResponse("traced")

    @app.get("/slow")
    async def slow() -> PlainTextResponse:
        await stopping.wait()
        return PlainTextResponse("slow")

    app.router.routes.extend(health_routes({}, app.state))
    return app


async def main() -> None:
    settings = processes.read_settings(ProcessSettings)
    stopping = asyncio.Event()
    with telemetry.configured("api", settings):
        await api_process.serve_api(create_app(stopping), settings, at_stop=stopping.set)


if __name__ == "__main__":
    processes.run(main())
