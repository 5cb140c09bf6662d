"""Attacks on a running service, one file per group. `benchmarks/attack.py` runs them."""
