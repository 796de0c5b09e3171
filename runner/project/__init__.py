"""A project: its files become nodes and their graph, from which selectors select."""
