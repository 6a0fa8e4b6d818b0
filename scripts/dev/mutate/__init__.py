"""Mutants of the sources: places to change, one build with all of them, and who notices."""
