"""Compare the cells of the Spark job with those of one plain query: `make differential`.

Random histories go through Kafka, Spark and PostgreSQL in all ways to cut them into batches; DuckDB
answers the same question from the raw records. `make check-cells` asks the same query about the
stack that runs now.

Read first: oracle.py (the query), random_history.py (the histories), campaign.py (the command).
"""
