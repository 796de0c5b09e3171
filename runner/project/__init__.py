"""A project's files read into nodes, their graph, and what is selected of it."""
