"""LEMON's twelve mutation rules (section 3.1), one file each."""
