"""Who shares memory with whom: the record of one allocation, and views of it."""
