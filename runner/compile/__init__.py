"""The compiler: formats become plans, plans become SQL."""
