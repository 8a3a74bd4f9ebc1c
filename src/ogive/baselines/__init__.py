"""Other conditional density estimators, alike in use. zuko and ngboost are imported when first needed."""

from .boosted import Boosted
from .ddn import DDN
from .flows import MAF, NSF, NSFEnsemble
from .mdn import MDN
from .radial import RNF

_BY_NAME = {"MDN": MDN, "MAF": MAF, "NSF": NSF, "RNF": RNF, "DDN": DDN, "NSFEnsemble": NSFEnsemble, "Boosted": Boosted}

__all__ = ["BASELINES", "Boosted", "DDN", "MAF", "MDN", "NSF", "NSFEnsemble", "RNF"]


def __getattr__(name: str) -> dict[str, type]:
    if name == "BASELINES":
        return dict(_BY_NAME)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
