"""Several processes with the same store: one of them writes, the others follow."""
