"""What runs INSIDE a target's process. Imports the standard library, NumPy, outvote.core and
its own framework, nothing else; judges nothing.
"""
