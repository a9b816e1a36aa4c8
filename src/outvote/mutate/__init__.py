"""Rules that make a new model out of one, and what they draw from. No framework is needed here."""
