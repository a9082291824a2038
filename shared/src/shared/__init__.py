"""Mechanisms that every service uses, in seven rooms; no business word.

A command goes web -> eventsourcing -> outbox -> (Kafka) -> inbox -> projections; `messaging` and
`runtime` are below all of them. Each room's `__init__.py` is its card; a room imports only lower
ones: outbox | inbox > web | projections > eventsourcing > messaging > runtime.
"""
