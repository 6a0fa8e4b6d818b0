"""`python -m attndocs` writes the tables of docs/ anew from their rows."""

import os

from .documents import documents, renewed

for path in documents():
    before = path.read_text(encoding="utf-8")
    path.write_text(renewed(before), encoding="utf-8")
    print(os.path.relpath(path))
