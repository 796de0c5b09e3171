"""Storages of tables, one class each; no line here imports Spark."""
