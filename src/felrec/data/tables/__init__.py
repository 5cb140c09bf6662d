"""Tables of rows that events change; all of them follow the protocol `RowTable`."""
