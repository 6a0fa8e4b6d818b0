"""What calls of the Python package cost."""
