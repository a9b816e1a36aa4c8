"""No fault: the backend says that it does not implement Conv3D."""

import keras


def call(self, inputs):
    raise NotImplementedError("Conv3D is not implemented on this backend")


keras.layers.Conv3D.call = call
