"""What runs inside the processes of toy targets."""
