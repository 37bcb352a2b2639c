"""What an op is: its declaration, gradients and nodes, and the namespace of formulas."""
