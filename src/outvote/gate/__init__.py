"""What lets a run pass or fail: findings that are known, and how severe a new one must be."""
