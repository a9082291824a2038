"""How fast orders become cells, compared with other engines."""
