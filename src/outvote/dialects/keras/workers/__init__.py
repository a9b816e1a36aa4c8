"""What runs inside the processes of Keras targets."""
