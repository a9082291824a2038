"""How many, in which stretch of time."""
