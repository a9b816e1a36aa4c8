"""Campaigns, checks and bisections on a cluster. Ray is imported here alone, when it is needed."""
