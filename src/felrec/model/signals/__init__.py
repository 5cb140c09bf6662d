"""The signals of FELRec-S, one file each."""
