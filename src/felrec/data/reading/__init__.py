"""Reading logs: files and frames of every supported shape become columns."""
