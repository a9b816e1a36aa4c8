"""The rules that know operators by name, one file each."""
