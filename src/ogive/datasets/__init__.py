"""Data to learn from and to be judged on: exact toy densities, the UCI tables, train-test splits."""

from __future__ import annotations

from . import splits, toy, uci

__all__ = ["splits", "toy", "uci"]
