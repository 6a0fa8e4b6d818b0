"""Pictures from attnbench rows: reads attnbench/1 JSON Lines, writes PNG, SVG and CSV."""
