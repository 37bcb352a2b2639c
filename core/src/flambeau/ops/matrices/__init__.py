"""Products, factors, eigenvalues and solutions of matrices."""
