"""Receives spans over OTLP/HTTP, as a collector does, and discards them."""

import os

import uvicorn
from starlette.types import Receive, Scope, Send

from shared.runtime import processes
from shared.web.connections import server_config


async def main() -> None:
    host, port = os.environ["HTTP_HOST"], int(os.environ["HTTP_PORT"])
    await uvicorn.Server(server_config(forget, host, port)).serve()


async def forget(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})


if __name__ == "__main__":
    processes.run(main())
