"""Things: one for each confirmed order, and those that are added by hand."""
