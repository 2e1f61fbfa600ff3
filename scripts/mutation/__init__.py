"""Mutation testing of the pure cores: `python -m scripts.mutation`, or `make mutants`."""
