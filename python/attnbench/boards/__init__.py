"""The pages of `attnbench board`: other people's results, from a folder of archives of `attnbench submit`."""
