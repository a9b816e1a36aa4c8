"""Other versions of libraries, side by side: each in a folder of the user's cache.

A version of Keras alone is an overlay: its files, put in front of the installed libraries. All
else is a virtual environment of its own. Both are named by what they hold, made whole or not at
all, and used again.
"""
