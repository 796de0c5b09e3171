"""Messages in Avro, their schemas and files."""
