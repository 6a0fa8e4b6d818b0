"""Two commits measured in turn on one machine, and compared."""
