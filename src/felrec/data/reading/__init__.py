"""Read logs: every supported file format and frame becomes columns."""
