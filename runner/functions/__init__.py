"""The functions that compiled SQL calls: all that travels to executors, and nothing else."""
