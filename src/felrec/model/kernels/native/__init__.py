"""Compiled kernels: what runs for every recommendation, in C and without the interpreter lock."""
