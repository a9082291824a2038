"""Two streams, a stream and a table, two tables."""
