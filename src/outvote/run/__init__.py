"""The pool: one isolated process per target. Never imports a framework."""
