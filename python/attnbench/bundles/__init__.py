"""Archives of other people's rows: made by `attnbench submit`, read without running anything, measured anew by `verify`."""
