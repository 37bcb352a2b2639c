"""Parts of data loading that extensions reach for, such as the map of collate functions."""
