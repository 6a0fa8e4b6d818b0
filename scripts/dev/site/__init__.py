"""The static web site: documents and reference rows gathered for MkDocs, with the report."""
