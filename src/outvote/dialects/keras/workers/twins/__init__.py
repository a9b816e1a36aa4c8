"""What people make of Keras models. It imports nothing of ours: its text goes into repro.py."""
