"""A project's files -> nodes, their graph, and the nodes that a selector selects."""
