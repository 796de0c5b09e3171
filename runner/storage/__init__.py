"""How tables are kept, one class per storage; without a line that imports Spark."""
