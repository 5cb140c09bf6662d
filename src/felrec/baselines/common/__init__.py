"""Code shared by several baselines."""
