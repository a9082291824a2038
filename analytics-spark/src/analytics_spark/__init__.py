"""For every hour, how many users bought an item that comes from the place where they live?

definition.sql       the question itself, as one query over all records
job/                 answers it incrementally: Kafka -> Spark -> cells in PostgreSQL
serving/             reads the cells: the HTTP API, the stream of changes, the page
reconciliation/      compares the cells of final hours with the event stores
operations/          commands for operators: reprocess, rescale, export, archive

Imports go one way: operations > serving | reconciliation > job > settings (a contract in the
pyproject.toml at the root).
"""
