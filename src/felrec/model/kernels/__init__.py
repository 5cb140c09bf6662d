"""Optimised code; `felrec.model.paper.reference` has the readable version.

The name of a kernel says what it computes, its docstring how it saves time.
"""
