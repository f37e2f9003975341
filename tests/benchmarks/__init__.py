"""Measurements that are not tests: each module is a program that prints Markdown for docs/benchmarks.md."""
