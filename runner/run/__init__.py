"""The work on chosen nodes: landing, building, testing, their order, and the results."""
