"""Everything that works with Spark: sessions, messages, tables, checkpoints, locks."""
