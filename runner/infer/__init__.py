"""The inspection of messages of an unknown kind: it finds the formats that fit them, or drafts a spec."""
