"""Strategies for Hypothesis: layers, models and inputs, drawn from the catalogue of `fuzz`.

    from hypothesis import given
    from outvote import strategies
    from outvote.testing import assert_consistent

    @given(strategies.models())
    def test_backends_agree(model):
        assert_consistent(model)

What is drawn is made by the Keras of one of the workers that the tests share. It shrinks to few
layers, parameters at their defaults and small shapes.
"""

from outvote.strategies.drawn import inputs_for, layers, models, parameters

__all__ = ["inputs_for", "layers", "models", "parameters"]
