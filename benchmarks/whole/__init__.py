"""What the whole stack carries end to end."""
