"""Rows of attnbench as one self-contained HTML file: text, pictures to explore, and tables."""
