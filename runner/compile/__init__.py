"""Formats to plans, plans to SQL."""
