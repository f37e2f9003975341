"""Runtimes that compute a model, each in a child process of its own. See `child`."""
