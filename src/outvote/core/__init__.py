"""The nouns of outvote, as plain data. Imports nothing of ours outside this folder."""
