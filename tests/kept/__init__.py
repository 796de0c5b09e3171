"""Tables of versions of this project, as they were written, for the versions to come."""
