"""Trees of life, genomes and pictures of molecules."""

CASES = []
