"""What stands between kernels and a device: launches, faults, memory, and draws."""
