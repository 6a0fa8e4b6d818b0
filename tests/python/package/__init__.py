"""Tests of the Python package. They need .venv-python and the extension: tests/python/program/test_python.py runs them there."""
