"""The pages that compare campaigns."""
