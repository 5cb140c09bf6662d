"""Code that is written for speed; what it computes is plain in `felrec.model.paper.reference`.

A kernel says what it computes by its name, and how it saves time in its docstring.
"""
