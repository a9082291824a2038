"""The read models of orders-svc: the worker updates them, a rebuild creates them from events."""

import orders_svc.item.contract
import orders_svc.order.contract
from orders_svc.item import catalogue
from orders_svc.order import summaries
from shared.projections.read_models import ReadModel

READ_MODELS = (
    ReadModel(
        table="catalogue",
        topic=orders_svc.item.contract.TOPIC,
        types=tuple(orders_svc.item.contract.CODEC.names),
        project=catalogue.project,
    ),
    ReadModel(
        table="order_summaries",
        topic=orders_svc.order.contract.TOPIC,
        types=tuple(orders_svc.order.contract.CODEC.names),
        project=summaries.project,
    ),
)
