"""`python -m dev.pages` writes the tables of docs/ and results/ anew from their rows."""

import os

from .documents import documents, renewed

for path in documents():
    before = path.read_text(encoding="utf-8")
    path.write_text(renewed(before), encoding="utf-8")
    print(os.path.relpath(path))
