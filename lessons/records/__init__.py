"""One record at a time: without a state."""
