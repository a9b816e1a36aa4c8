"""What a campaign has seen, on disk."""
