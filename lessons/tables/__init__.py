"""A topic as a stream of changes, and as the table that they lead to."""
