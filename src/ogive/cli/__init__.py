"""The shell: the command `ogive`. One file per kind of question; heavy libraries are imported when a command runs."""

from .shell import main

__all__ = ["main"]
