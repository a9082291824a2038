"""For every hour: who bought an item that comes from where they live."""
