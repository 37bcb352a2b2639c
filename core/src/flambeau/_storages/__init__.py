"""Storages as users hold them, and memory that is resized, moved, shared or foreign."""
