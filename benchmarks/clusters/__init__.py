"""What `benchmarks/cluster.py` measures of several processes with one store, one file per group."""
