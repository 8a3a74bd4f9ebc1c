"""Exceptions and warnings that users of ogive meet."""

from __future__ import annotations

__all__ = [
    "DataError",
    "DataTypeError",
    "FileFormatError",
    "NotAvailableError",
    "NumericalError",
    "OgiveError",
    "TrainingStoppedWarning",
]


class OgiveError(Exception):
    """Root of the errors that ogive raises on purpose."""


class DataError(OgiveError, ValueError):
    """A value that the user gave does not meet its requirement."""


class DataTypeError(OgiveError, TypeError):
    """A value that the user gave is of a type that cannot be used."""


class FileFormatError(OgiveError, ValueError):
    """A file is not what it should be: not a model, damaged, or of another version."""


class NotAvailableError(OgiveError, NotImplementedError):
    """The question has no exact answer for this kind of model; the message says what has."""


class NumericalError(OgiveError, ArithmeticError):
    """A computation did not reach its stated accuracy; no approximate answer is returned in its place."""


class TrainingStoppedWarning(UserWarning):
    """Training was interrupted; the model holds the best weights seen so far."""
