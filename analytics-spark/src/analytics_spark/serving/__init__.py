"""What reads the cells: the HTTP API, the stream of changed hours, and the page.

In: requests with a bearer token, and `cells`, `epochs` and `batches` in PostgreSQL; from Kafka only
where the topics end (`topic_ends`). Nothing here imports Spark or writes a table.
Out: JSON (`api`), server-sent events (`change_feed`, `stream`), HTML (`page`, `chart`).
Guarantees, with the tests that show them:
- buyers are distinct and amounts exact: integration/test_api.py
- readers see all of one generation of the tables, and nothing of another:
  integration/test_generations.py
- a listener that reconnects with its Last-Event-ID misses no change, and a slow one is
  disconnected: integration/test_stream.py
- the page loads nothing from third parties: integration/test_page.py, test_page_in_browser.py
Read first: api.py, the routes; then hour_queries.py, their SQL.
"""
