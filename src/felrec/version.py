"""The version of felrec."""

__version__ = "0.1.0"
