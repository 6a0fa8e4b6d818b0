"""Tests of the Python package. They need .venv-python and the extension: scripts/tests/test_python.py runs them there."""
