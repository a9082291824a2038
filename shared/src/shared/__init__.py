"""Mechanisms that every service uses, in eight rooms; no business word.

A command goes web -> eventsourcing -> outbox -> (Kafka) -> inbox -> projections; `messaging` and
`runtime` are below all of them, and `service` composes processes of them. Each room's `__init__.py`
is its card; a room imports only lower ones:
service > outbox | inbox > web | projections > eventsourcing > messaging > runtime.
"""
