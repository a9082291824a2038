"""python -m users_svc COMMAND: a process, or a tool for operators."""

import sys

from shared.runtime import processes, telemetry
from shared.service import command_line
from shared.service.command_line import Service
from users_svc import worker
from users_svc.bootstrap import open_resources
from users_svc.read_models import READ_MODELS
from users_svc.settings import UsersSettings


async def run_api() -> None:
    # Imported here, because they take memory that only the api needs.
    from shared.web import api_process
    from users_svc import api
    from users_svc.api_settings import UsersApiSettings
    from users_svc.personal_data import Vault, WrongMasterKey

    settings = processes.read_settings(UsersApiSettings)
    with telemetry.configured("users-api", settings):
        async with open_resources(settings, "users-api") as resources:
            vault = Vault(resources.pool, settings.master_key)
            try:
                await vault.check_master_key()
            except WrongMasterKey as error:
                sys.exit(f"hometown: users-api does not start: {error}")
            app = api.create_app(resources, vault, api_process.create_authenticator(settings))
            await api_process.serve_api(app, settings)


SERVICE = Service(
    name="users",
    package="users_svc",
    settings=UsersSettings,
    open_resources=open_resources,
    stores=lambda resources: [resources.users],
    read_models=READ_MODELS,
    create_consumer=worker.create_consumer,
    run_api=run_api,
)

if __name__ == "__main__":
    command_line.main(SERVICE)
