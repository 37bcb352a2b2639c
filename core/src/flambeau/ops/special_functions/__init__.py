"""Special functions: error, gamma, Bessel and their kin, and orthogonal polynomials."""
