"""The tables of docs/ and results/ that commands make from rows."""
