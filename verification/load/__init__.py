"""Believable load: planned by a seed, sent by a clock, compared with totals computed apart."""
