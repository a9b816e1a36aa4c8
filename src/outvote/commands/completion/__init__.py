"""`outvote completion`: scripts that let shells complete commands and options."""
