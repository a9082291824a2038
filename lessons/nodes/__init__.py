"""What a reader of a stream owns, and how another one takes it over."""
