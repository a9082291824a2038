"""Lessons in streams: small programs in Spark and in Faust, run on a real broker."""
