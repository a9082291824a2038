"""Items and orders."""
