"""python -m things_svc COMMAND: a process, or a tool for operators."""

from shared.runtime import processes, telemetry
from shared.service import command_line
from shared.service.command_line import Service
from things_svc import worker
from things_svc.bootstrap import open_resources
from things_svc.read_models import READ_MODELS
from things_svc.settings import ThingsSettings


async def run_api() -> None:
    # Imported here, because they take memory that only the api needs.
    from shared.web import api_process
    from things_svc import api

    settings = processes.read_settings(ThingsSettings)
    with telemetry.configured("things-api", settings):
        async with open_resources(settings, "things-api") as resources:
            app = api.create_app(resources, api_process.create_authenticator(settings))
            await api_process.serve_api(app, settings)


SERVICE = Service(
    name="things",
    package="things_svc",
    settings=ThingsSettings,
    open_resources=open_resources,
    stores=lambda resources: [resources.things],
    read_models=READ_MODELS,
    create_consumer=worker.create_consumer,
    run_api=run_api,
)

if __name__ == "__main__":
    command_line.main(SERVICE)
