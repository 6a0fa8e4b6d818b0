"""The kinds of pictures, one subject a module."""
