"""Which positions caches that forget keep here and in published code (results/equivalence.md)."""
