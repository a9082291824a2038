"""A slow query, measured and made fast."""
