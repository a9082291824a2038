"""Items: what can be ordered, and where it comes from."""
