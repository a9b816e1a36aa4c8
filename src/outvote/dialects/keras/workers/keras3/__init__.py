"""The worker for Keras 3: `worker.py` answers requests, the other files do its parts."""

from outvote.dialects.keras.workers.keras3.worker import create, stand_by

__all__ = ["create", "stand_by"]
