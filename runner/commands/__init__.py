"""The commands, one file per family. Each takes its arguments and calls the packages that do the work."""
