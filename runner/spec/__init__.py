"""The language of formats: its words, and the reading of specs into data."""
