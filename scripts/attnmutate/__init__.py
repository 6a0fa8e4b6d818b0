"""Mutants of the sources: places that can be changed, one build with all of them, and who notices."""
