"""What several baselines share."""
