"""Rows as Parquet, from what `attnbench export` prints."""
