"""Words that driver and workers of this wing share: how nodes and types are told."""
