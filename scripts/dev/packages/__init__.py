"""What attention packages of PyPI pass and fail of attnbench.check()."""
