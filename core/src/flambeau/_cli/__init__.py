"""What ``python -m flambeau`` does, a file per command."""
