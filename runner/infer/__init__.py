"""Looking at messages of an unknown kind: which formats fit them, and a draft of a spec if none does"""
