"""Hometown on one machine: real servers as plain processes, without containers."""
