"""A second cluster with copies of the records of the first, and what it has when that is gone."""
