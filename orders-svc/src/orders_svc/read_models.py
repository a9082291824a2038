"""The read models of orders-svc: the worker updates them, a rebuild creates them from events."""

from orders_svc.item import catalogue
from orders_svc.order import summaries

READ_MODELS = (catalogue.READ_MODEL, summaries.READ_MODEL)
