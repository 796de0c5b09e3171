"""The language of formats: its words, and specs read into data."""
