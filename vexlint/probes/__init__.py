"""Installed runtimes are asked about a model, and what they answer becomes findings. See `ask`."""
