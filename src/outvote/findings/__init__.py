"""What is told: a finding, its words, its evidence, and the gate it has to pass."""
