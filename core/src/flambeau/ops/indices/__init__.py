"""Reading and writing at places that are computed: indices, masks, diagonals."""
