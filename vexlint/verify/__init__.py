"""Proof that two models, or one model on two runtimes, compute the same. See `proof`."""
