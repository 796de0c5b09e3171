"""The commands, one file for each family: each reads its arguments and calls the stages."""
