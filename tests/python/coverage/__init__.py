"""Tests of attnbench coverage."""
