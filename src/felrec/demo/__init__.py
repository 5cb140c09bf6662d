"""The demo: trains a small model on real events and serves it with its web page."""
