"""What a campaign tries beside mutants: illegal values, and searches over inputs and weights."""
