"""All that knows Spark: sessions, messages, tables, checkpoints, locks."""
