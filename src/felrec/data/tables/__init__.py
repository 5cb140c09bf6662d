"""Tables whose rows are changed by events; all of them implement the protocol `RowTable`."""
