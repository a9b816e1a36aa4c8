"""New nodes and graphs, valid by construction: drawn from the schemas, filtered by inference."""
