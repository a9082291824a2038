"""Items that can be ordered, with their origin and price over time."""
