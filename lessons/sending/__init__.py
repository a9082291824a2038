"""Ways to send records, and what a failure loses, repeats or overtakes."""
