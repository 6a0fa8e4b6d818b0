"""Published results, measured again with attnbench and judged by code."""
