"""The rules that know layers by name, one file each."""
