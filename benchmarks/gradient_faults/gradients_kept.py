"""PyTorch: gradients are added to those of the step before."""

from keras import Model

Model.zero_grad = lambda self, set_to_none=True: None
