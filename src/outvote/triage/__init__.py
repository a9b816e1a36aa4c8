"""From a difference to a verdict: stages that each do one thing."""
