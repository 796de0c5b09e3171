"""Running selected nodes: landing, building and testing, their order, and the results."""
