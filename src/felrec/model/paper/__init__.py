"""FELRec as published; read `reference.py` first."""
