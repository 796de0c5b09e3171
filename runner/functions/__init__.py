"""The functions that compiled SQL calls: this package, and nothing else, travels to executors."""
