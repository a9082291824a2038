"""What a crash loses, and what it repeats."""
