"""The worker for Keras 2: `worker.py` answers requests, the other files do its parts."""

from outvote.dialects.keras.workers.keras2.worker import create

__all__ = ["create"]
