"""A small trained detector of circles, squares and triangles, and the scripts that make it. See README.md."""
