"""python -m orders_svc COMMAND: a process, or a tool for operators."""

from orders_svc import worker
from orders_svc.bootstrap import open_resources
from orders_svc.order import pending_orders, publications
from orders_svc.read_models import READ_MODELS
from orders_svc.settings import OrdersSettings
from shared.runtime import processes, telemetry
from shared.service import command_line
from shared.service.command_line import Service


async def run_api() -> None:
    # Imported here, because they take memory that only the api needs.
    from orders_svc import api
    from orders_svc.service_clients import open_service_clients
    from shared.web import api_process

    settings = processes.read_settings(OrdersSettings)
    with telemetry.configured("orders-api", settings):
        async with (
            open_resources(settings, "orders-api") as resources,
            open_service_clients(
                settings.users_url, settings.analytics_url, settings.http_ca_file
            ) as service_clients,
            resources.admission.observing(),
        ):
            app = api.create_app(
                resources, api_process.create_authenticator(settings), service_clients
            )
            await api_process.serve_api(app, settings, at_stop=resources.watch.close)


SERVICE = Service(
    name="orders",
    package="orders_svc",
    settings=OrdersSettings,
    open_resources=open_resources,
    stores=lambda resources: [resources.items, resources.orders],
    read_models=READ_MODELS,
    create_consumer=worker.create_consumer,
    forget_offsets=publications.FORGET,
    background=lambda resources, settings: [
        worker.reject_overdue_periodically(resources, settings.order_timeout),
        pending_orders.measure_periodically(resources.pool),
    ],
    run_api=run_api,
)

if __name__ == "__main__":
    command_line.main(SERVICE)
