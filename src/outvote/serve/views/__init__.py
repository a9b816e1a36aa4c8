"""The pages, one module each: what an address is answered with."""
