"""One folder per vocabulary of models. Nobody imports a wing: it is found by its folder."""
