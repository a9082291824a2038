"""The streaming job: three Kafka topics in, exact cells in PostgreSQL out.

In: the records of users.v1, items.v1 and orders.v1, as bytes (`source`, `topics`, `records`).
Out: rows of `cells`, `epochs` and `batches` (`sink`), and dead letters (`dead_letters`).
Guarantees, with the tests that show them:
- a batch counts once, whatever crashes (`sink`), and so does a repeated order (`orders.settle`):
  integration/test_sink.py, `make crashes`
- cells are a function of the set of accepted events: unit/test_cells.py,
  `make differential`
- a bad record stops nothing and is not lost: unit/test_records.py, integration/test_query.py
- one writer for one generation of the tables, and only from the checkpoint that filled them:
  integration/test_writer.py, integration/test_generations.py
- what is read is what was committed, each record once, and a loss ends the query (`log_reader`):
  unit/test_record_batches.py, integration/test_log_reader.py
Read first: processor.py, the one stateful operator; then what comes before it: source.py (Spark's
side), log_reader -> record_batches -> records -> pack; what it is made of: orders, versions, cells
(pure functions over Arrow tables); and sink.py.
"""
