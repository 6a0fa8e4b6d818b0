"""The static web site of the documents, the reference rows, a report of them and a page for each variant: scripts/site."""
