"""A worker in plain NumPy that lies, crashes and hangs on demand."""

from outvote.dialects.keras.workers.fake.worker import create

__all__ = ["create"]
