"""The rules of docs/architecture.md that a program can check.

A rule is a function from modules to complaints. Each is put to the tree, and to a snippet that breaks it.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

# A room (a top-level file or folder) imports only from rooms of lower rank, a folder also from itself.
RANKS = {
    "errors": -2,  # the floor: even the numerics raise
    "numerics": -1,
    "memory": -1,
    "arrays": -1,
    "distribution": 0,
    "mixture": 1,
    "choices": 1,
    "quadrature": 1,
    "draws": 2,
    "pieces": 2,
    "nn": 2,
    "datasets": 2,
    "adamw": 2,
    "storage": 2,  # tensors and a header, no estimator: so the estimator's save and load may use it
    "training": 3,
    "fitted": 3,
    "prediction": 3,
    "devices": 3,
    "plan": 4,
    "pooling": 4,
    "fitting": 5,
    "estimator": 6,
    "metrics": 5,
    "conformal": 5,
    "baselines": 6,
    "tables": 7,
    "plotting": 6,
    "adapters": 7,
    "bench": 7,
    "cli": 8,
    "__main__": 9,
}

# A library that one part of the house needs is imported by that part alone: a file, or a folder as "cli.*".
OWNERS = {
    "matplotlib": {"plotting", "bench.figures"},
    "mlflow": {"adapters.mlflow"},
    "ngboost": {"baselines.boosted"},
    "openpyxl": {"datasets.uci", "datasets.uci_parsers"},
    "pandas": {"prediction"},
    "polars": {"tables"},
    "pooch": {"datasets.uci", "datasets.uci_parsers"},
    "pyarrow": {"tables"},
    "ray": {"adapters.ray"},
    "rich": {"cli", "cli.*"},
    "skpro": {"adapters.skpro"},
    "typer": {"cli", "cli.*"},
    "xlrd": {"datasets.uci", "datasets.uci_parsers"},
    "zuko": {"baselines.flows"},
}
# Of these, the ones whose owner must work without them: imported where they are used, inside a function.
INSIDE_A_FUNCTION = {"pandas"}

LONGEST = 320
VAGUE = {"base", "bases", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
MAY_PRINT = {"bench", "cli", "__main__"}
GLOBAL_STATE = {
    "numpy.random.seed",
    "numpy.random.set_state",
    "random.seed",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "torch.manual_seed",
    "torch.random.manual_seed",
    "torch.seed",
    "torch.set_default_device",
    "torch.set_default_dtype",
    "torch.set_default_tensor_type",
    "torch.set_num_threads",
}


@dataclass(frozen=True)
class Module:
    """One source file; `name` is dotted and leaves out "ogive.", so the package's own __init__ is ""."""

    name: str
    source: str
    is_package: bool

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    @property
    def file(self) -> str:
        return "/".join(["src/ogive", *filter(None, self.name.split("."))]) + (
            "/__init__.py" * self.is_package or ".py"
        )

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)


class Import(NamedTuple):
    """One import statement; the target of a relative one is dotted like a module's name."""

    line: int
    target: str
    names: tuple[str, ...]
    relative: bool
    in_function: bool


Modules = dict[str, Module]


def read_tree() -> Modules:
    package = ROOT / "src" / "ogive"
    found = {}
    for path in sorted(package.rglob("*.py")):
        is_package = path.name == "__init__.py"
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return found


def snippet(files: dict[str, str]) -> Modules:
    """Modules from {name: source}; a folder's __init__ is written "nn.", the package's own "."."""
    modules = [Module(name.rstrip("."), source, name.endswith(".")) for name, source in files.items()]
    return {module.name: module for module in modules}


def imports(module: Module) -> Iterator[Import]:
    tree = module.tree
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    inside = {id(n) for f in ast.walk(tree) if isinstance(f, functions) for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, (), False, id(node) in inside)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            target = node.module or ""
            if node.level:
                folder = module.name.split(".") if module.name else []
                up = node.level - module.is_package
                target = ".".join([*folder[: len(folder) - up], *filter(None, [node.module])])
            yield Import(node.lineno, target, names, bool(node.level), id(node) in inside)


def inner_imports(module: Module, modules: Modules) -> Iterator[tuple[int, str]]:
    """(line, name of the imported module of ours); `from . import jet` is an import of jet."""
    for found in imports(module):
        if not found.relative:
            continue
        full = {name: f"{found.target}.{name}".lstrip(".") for name in found.names}
        targets = {
            path if path in modules or path in RANKS else found.target
            for name, path in full.items()
            if found.target or name != "__version__"
        }
        yield from ((found.line, target) for target in sorted(targets))


def calls(module: Module) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each function called by name, with import aliases spelled out."""
    tree = module.tree
    alias = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            alias |= {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            alias |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and re.fullmatch(r"[\w.]+", called := ast.unparse(node.func)):
            first, dot, rest = called.partition(".")
            yield node.lineno, alias.get(first, first) + dot + rest


def owned(module: Module, owners: set[str]) -> bool:
    return bool({module.name, f"{module.room}.*"} & owners)


# --- the rules


def every_room_has_a_rank(modules: Modules) -> list[str]:
    rooms = {module.room: module.file for module in modules.values() if module.name}
    return [
        f"{file}: {room!r} must have a rank; got none. Give it a rank in RANKS and in docs/architecture.md."
        for room, file in rooms.items()
        if room not in RANKS
    ]


def imports_point_down(modules: Modules) -> list[str]:
    complaints = []
    for module in modules.values():
        for line, target in inner_imports(module, modules) if module.name else ():
            room = target.partition(".")[0]
            where = f"{module.file}:{line} imports {target or 'ogive itself'}"
            if not room:
                complaints.append(f"{where}: import a name from the file that defines it.")
            elif room == module.room and (module.is_package or "." in module.name):
                continue
            elif RANKS.get(room, 99) >= RANKS.get(module.room, 99):
                complaints.append(
                    f"{where}: rank {RANKS.get(module.room)} must only know lower ranks; "
                    f"got rank {RANKS.get(room)}. "
                    "Hand it in as an argument, or move what both need down."
                )
    return complaints


def no_import_cycle(modules: Modules) -> list[str]:
    graph = {
        name: {target for _, target in inner_imports(module, modules) if target in modules}
        for name, module in modules.items()
        if name
    }
    complaints, done = [], set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            complaints.append(f"imports must not run in a circle; got {cycle}. Move what both need to a third file.")
        elif name in graph and name not in done:
            for target in sorted(graph[name]):
                visit(target, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())
    return complaints


def inner_imports_are_relative(modules: Modules) -> list[str]:
    return [
        f"{module.file}:{found.line}: must not import ogive by name from inside. Write `from .` instead."
        for module in modules.values()
        for found in imports(module)
        if not found.relative and found.target.partition(".")[0] == "ogive"
    ]


def optional_libraries_stay_with_their_owner(modules: Modules) -> list[str]:
    complaints = []
    for module in modules.values():
        for found in imports(module):
            library = found.target.partition(".")[0]
            if found.relative or library not in OWNERS:
                continue
            if not owned(module, OWNERS[library]):
                owners = " or ".join(sorted(OWNERS[library]))
                complaints.append(f"{module.file}:{found.line}: {library} must be imported by {owners} only.")
            elif library in INSIDE_A_FUNCTION and not found.in_function:
                complaints.append(f"{module.file}:{found.line}: {library} must be imported inside a function.")
    return complaints


def init_files_only_list_names(modules: Modules) -> list[str]:
    def allowed(node: ast.stmt) -> bool:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                return True
            case ast.FunctionDef(name="__getattr__" | "__dir__"):
                return True
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=[]):
                return all(allowed(inner) for inner in body)
            case ast.Assign(targets=[ast.Name(id="__version__")]):
                return True
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                literal = isinstance(value, ast.List | ast.Tuple | ast.Dict | ast.Set)
                return literal and name.startswith("_")
        return False

    return [
        f"{module.file}:{node.lineno}: must only list public names; got code. Move it to a file of its own."
        for module in modules.values()
        if module.is_package
        for node in module.tree.body
        if not allowed(node)
    ]


def no_assert(modules: Modules) -> list[str]:
    return [
        f"{module.file}:{node.lineno}: must not assert (python -O removes it). Raise an error that teaches."
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assert)
    ]


def no_long_file(modules: Modules) -> list[str]:
    lengths = {module.file: len(module.source.splitlines()) for module in modules.values()}
    return [
        f"{file}: must have at most {LONGEST} lines; got {length}. What are its two ideas?"
        for file, length in lengths.items()
        if length > LONGEST
    ]


def no_vague_name(modules: Modules) -> list[str]:
    return [
        f"{module.file}: a module must be a noun of the field; got {word!r}. Say what is in it."
        for module in modules.values()
        for word in module.name.split(".")
        if word in VAGUE
    ]


def no_print(modules: Modules) -> list[str]:
    return [
        f"{module.file}:{line}: must not print outside cli and bench. Return it, or warn."
        for module in modules.values()
        if module.room not in MAY_PRINT
        for line, name in calls(module)
        if name == "print"
    ]


def no_global_state(modules: Modules) -> list[str]:
    return [
        f"{module.file}:{line}: must not change global state; got {name}. Hand down a Generator or a dtype."
        for module in modules.values()
        for line, name in calls(module)
        if name in GLOBAL_STATE
    ]


# --- the tree, and bad snippets

BROKEN: list[tuple[Callable[[Modules], list[str]], dict[str, str], str]] = [
    (every_room_has_a_rank, {"surprise": ""}, "'surprise' must have a rank"),
    (every_room_has_a_rank, {"rooms.inner": ""}, "'rooms' must have a rank"),
    (
        imports_point_down,
        {"numerics": "from .estimator import OgiveRegressor"},
        "numerics.py:1 imports estimator",
    ),
    (
        imports_point_down,
        {"nn.cdf": "def f():\n    from ..metrics import nll"},
        "nn/cdf.py:2 imports metrics",
    ),
    (
        imports_point_down,
        {"nn.": "from ..estimator import OgiveRegressor"},
        "nn/__init__.py:1 imports estimator",
    ),
    (imports_point_down, {"nn.cdf": "from .. import estimator"}, "imports estimator"),
    (imports_point_down, {"storage": "from .nn.cdf import CDFNetwork"}, "rank 2 must only know lower ranks"),
    (
        imports_point_down,
        {"nn.cdf": "from ..prediction import Prediction"},
        "rank 2 must only know lower ranks",
    ),
    (imports_point_down, {"metrics": "from . import OgiveRegressor"}, "imports ogive itself"),
    (imports_point_down, {"cli": "from .surprise import x"}, "got rank None"),
    (no_import_cycle, {"nn.a": "from .b import x", "nn.b": "from .a import y"}, "nn.a -> nn.b -> nn.a"),
    (no_import_cycle, {"nn.": "from .a import x", "nn.a": "from . import y"}, "nn -> nn.a -> nn"),
    (inner_imports_are_relative, {"metrics": "import ogive"}, "metrics.py:1"),
    (inner_imports_are_relative, {"cli.demo": "from ogive.estimator import x"}, "cli/demo.py:1"),
    (optional_libraries_stay_with_their_owner, {"metrics": "import pandas as pd"}, "by prediction only"),
    (
        optional_libraries_stay_with_their_owner,
        {"cli": "import matplotlib.pyplot"},
        "by bench.figures or plotting only",
    ),
    (
        optional_libraries_stay_with_their_owner,
        {"bench.paper": "import matplotlib"},
        "by bench.figures or plotting only",
    ),
    (
        optional_libraries_stay_with_their_owner,
        {"baselines.mdn": "from zuko import x"},
        "by baselines.flows only",
    ),
    (optional_libraries_stay_with_their_owner, {"prediction": "import pandas"}, "inside a function"),
    (init_files_only_list_names, {".": "def fit(): ..."}, "src/ogive/__init__.py:1"),
    (init_files_only_list_names, {"nn.": "import torch\nSIZE = 3"}, "nn/__init__.py:2"),
    (no_assert, {"nn.jet": "x = 1\nassert x"}, "nn/jet.py:2"),
    (no_long_file, {"numerics": "\n" * (LONGEST + 1)}, "got 321"),
    (no_vague_name, {"nn.utils": ""}, "'utils'"),
    (no_vague_name, {"common.": ""}, "'common'"),
    (no_print, {"training": "def f():\n    print(1)"}, "training.py:2"),
    (no_global_state, {"training": "import torch\ntorch.manual_seed(0)"}, "torch.manual_seed"),
    (no_global_state, {"training": "import numpy as np\nnp.random.seed(0)"}, "numpy.random.seed"),
    (
        no_global_state,
        {"nn.cdf": "from torch import set_default_dtype as s\ns(1)"},
        "torch.set_default_dtype",
    ),
]
RULES = list(dict.fromkeys(rule for rule, _, _ in BROKEN))

SOUND = {
    ".": '"""Names."""\nfrom .estimator import Ogive\n__all__ = ["Ogive"]\n__version__ = f(1)\n'
    "_WHERE = {}\nif TYPE_CHECKING:\n    from .metrics import nll\ndef __getattr__(name): ...",
    "numerics": "from .errors import NumericalError\nimport torch\ntorch.Generator().manual_seed(0)",
    "nn.": "from .cdf import CDFNetwork",
    "nn.jet": "from ..numerics import log1mexp",
    "nn.cdf": "from . import jet\nfrom .jet import Jet\nfrom ..distribution import Triangular",
    "prediction": "def to_pandas(self):\n    import pandas",
    "estimator": "from . import __version__, storage\nfrom .nn import CDF\nfrom .training import train",
    "plotting": "import matplotlib",
    "cli.demo": "import typer, rich\nfrom ..plotting import plot_density\nprint(1)",
    "__main__": "from .cli import main",
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule):
    modules = read_tree()
    assert "" in modules, "src/ogive/__init__.py must exist"
    complaints = rule(modules)
    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize(("rule", "files", "complaint"), BROKEN, ids=lambda part: getattr(part, "__name__", ""))
def test_the_rule_finds_what_breaks_it(rule, files, complaint):
    complaints = rule(snippet(files))
    assert len(complaints) == 1
    assert complaint in complaints[0]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_rule_lets_sound_code_pass(rule):
    assert rule(snippet(SOUND)) == []


# --- dependencies


def declared() -> dict[str, set[str]]:
    """Names of the distributions of each extra; the core's under ""."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: {re.split(r"[^\w.-]", line)[0] for line in lines} for extra, lines in groups.items()}


def test_every_import_is_a_declared_dependency():
    distribution = {"sklearn": "scikit-learn"}
    names = declared()
    for module in read_tree().values():
        for found in imports(module):
            library = found.target.partition(".")[0]
            if found.relative or library in sys.stdlib_module_names:
                continue
            known = set().union(*names.values()) if library in OWNERS else names[""]
            wanted = distribution.get(library, library)
            assert wanted in known, (
                f"{module.file}:{found.line}: {wanted} must be a dependency in pyproject.toml. "
                "Add it there, in constraints.txt and docs/dependencies.md, or write the few lines ourselves."
            )


def test_every_dependency_is_explained():
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| ([\w.-]+) \|", page, flags=re.MULTILINE))
    needed = set().union(*declared().values())
    assert needed - explained == set(), "each needs a row in docs/dependencies.md"
    assert explained - needed - {"library"} == set(), "no longer a dependency: take its row out of docs/dependencies.md"


def test_every_dependency_we_install_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line and not line.startswith("#")}
    names = declared()
    assert names[""] | names["dev"] | names["plot"] | names["bench"] <= pinned
    assert "torch==2.13.0" in lines
