"""Work on whole stores: import, export, replay."""
