"""The tables of docs/ that commands make from rows."""
