"""ogive: conditional density estimation through the CDF."""

__version__ = "0.1.0"

from .estimator import OgiveRegressor, load
from .prediction import Prediction

__all__ = ["OgiveRegressor", "Prediction", "__version__", "load"]
