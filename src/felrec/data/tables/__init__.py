"""Tables of rows that events change: each works out its change by a block (reads only) and then applies it."""
