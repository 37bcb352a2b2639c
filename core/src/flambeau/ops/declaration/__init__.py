"""What an op is: its declaration, its nodes, and the namespace of gradient formulas."""
