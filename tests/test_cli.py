"""The shell as its users meet it: real processes, files and pipes; one clear line for whatever is wrong."""

from __future__ import annotations

import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ogive
from ogive import estimator, plotting
from ogive.cli import main
from ogive.errors import NumericalError
from ogive.tables import columns, read_table, write_table

FAST = ["--members", "2", "--max-epochs", "3", "--quiet"]
PNG = b"\x89PNG"


def run(*arguments: object, stdin: bytes | None = None, code: int = 0, cwd: Path | None = None) -> tuple[bytes, str]:
    """Run `ogive` in a process of its own in which warnings are errors; its standard output and error."""
    process = subprocess.run(
        [sys.executable, "-W", "error", "-m", "ogive", *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd
    )
    assert process.returncode == code, process.stderr.decode()
    return process.stdout, process.stderr.decode()


def rows_of(text: bytes | str) -> pl.DataFrame:
    return pl.read_csv(io.BytesIO(text if isinstance(text, bytes) else text.encode()))


def law_of(model: Path, table: Path) -> ogive.Prediction:
    fitted = ogive.load(model)
    return fitted.predict_dist(columns(read_table(table), list(fitted.feature_names_in_)))


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with tables, and models fitted by the shell: one.ogive of y, two.ogive of y and "z, cm"."""
    folder = tmp_path_factory.mktemp("shell")
    rng = np.random.default_rng(0)
    n = 60
    x, name = rng.normal(size=(n, 2)), [f"row {i}" for i in range(n)]
    table = {"name": name, "größe": x[:, 0], "x 2": x[:, 1], "w": rng.uniform(0.5, 2.0, n).round(3)}
    table |= {"y": (np.exp(0.3 * x[:, 0]) + rng.exponential(size=n)), "z, cm": 100 * x[:, 1] + rng.normal(size=n)}
    pl.DataFrame(table).write_csv(folder / "t.csv")
    pl.DataFrame(table).write_parquet(folder / "t.parquet")
    pl.DataFrame(table).select("x 2", "größe").head(7).write_csv(folder / "new.csv")
    one = ["--target", "y", "--drop", 'name,w,"z, cm"', "--out", str(folder / "one.ogive")]
    two = ["-t", "y", "-t", "z, cm", "--exclude", "name,w", "-o", str(folder / "two.ogive")]
    assert main(["fit", str(folder / "t.csv"), *one, *FAST]) == 0
    assert main(["fit", str(folder / "t.parquet"), *two, *FAST]) == 0
    return folder


# --- the first seconds


@pytest.mark.parametrize("arguments", [[], ["fit", "--help"]])
def test_help_comes_at_once_without_the_heavy_libraries(arguments):
    script = (
        "import sys; from ogive.cli import main; code = main(sys.argv[1:]); "
        "print(code, [name for name in ('torch', 'sklearn', 'scipy', 'polars', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script, *arguments], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0 []"


def test_help_names_every_command_and_option(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in ("fit", "predict", "sample", "prob", "score", "info", "plot", "demo"):
        assert f" {command} " in out
        assert main([command, "--help"]) == 0
        assert "--help" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ogive {ogive.__version__}\n"


# --- fit


def test_fit_writes_a_model_and_its_summary(home, tmp_path):
    out, err = run(
        "fit", home / "t.csv", "--target", "y", "--drop", "name", "--drop", "z, cm", "--weights", "w", "--seed", "3",
        "--members", "1", "--max-epochs", "2", "--support", "positive", "--json", cwd=tmp_path,
    )  # fmt: skip
    facts = json.loads(out)
    assert facts["model"] == "t.ogive"
    assert (facts["rows"], facts["features"], facts["outputs"]) == (60, ["größe", "x 2"], ["y"])
    assert (facts["members"], facts["epochs"]) == (1, 2)
    assert "2/2" in err  # the progress bar
    model = ogive.load(tmp_path / "t.ogive")
    assert (model.random_state, model.support, list(model.feature_names_in_)) == (3, "positive", ["größe", "x 2"])
    assert law_of(tmp_path / "t.ogive", home / "new.csv").logpdf(-1.0).max() == -np.inf


def test_fit_is_quiet_and_for_people_too(home, tmp_path):
    out, err = run(
        "fit", "-", "-t", "y", "--drop", 'name,w,"z, cm"', "--support", "0,", *FAST,
        stdin=(home / "t.csv").read_bytes(), cwd=tmp_path,
    )  # fmt: skip
    assert err == ""
    assert out.decode().splitlines()[:4] == [
        "model     model.ogive", "rows      60", "features  größe, x 2", "outputs   y",
    ]  # fmt: skip
    assert ogive.load(tmp_path / "model.ogive").support == [[0.0, None]]


def test_fit_repeats_itself_for_a_seed_and_heeds_weights(home, tmp_path):
    path = tmp_path / "m.ogive"

    def fit(*more: str) -> list[float]:
        fixed = ["-t", "y", "--drop", 'name,"z, cm"', "--out", str(path), *FAST]
        assert main(["fit", str(home / "t.csv"), *fixed, *more]) == 0
        return law_of(path, home / "t.csv").mean()[:, 0].tolist()

    plain = fit("--drop", "w")
    content = path.read_bytes()
    assert fit("--drop", "w") == plain
    assert path.read_bytes() == content
    assert fit("--drop", "w", "--seed", "1") != plain
    assert fit("--weights", "w") != plain


# --- predict


def test_predict_writes_what_python_says(home):
    out, err = run("predict", home / "one.ogive", home / "new.csv")
    assert err == ""
    found, law = rows_of(out), law_of(home / "one.ogive", home / "new.csv")
    assert found.columns == ["y_mean", "y_median", "y_lower", "y_upper"]
    expected = np.column_stack([law.mean(), law.median(), law.interval(0.9)[:, 0]])
    assert np.array_equal(found.to_numpy(), expected)


def test_predict_writes_what_is_asked_for_each_output(home, tmp_path, capsys):
    asked = ["--quantiles", ".05, .5,0.95,.5", "--interval", ".8", "--mean", "--out", str(tmp_path / "p.parquet")]
    assert main(["predict", str(home / "two.ogive"), str(home / "t.parquet"), *asked]) == 0
    assert capsys.readouterr() == ("", "")
    found, law = pl.read_parquet(tmp_path / "p.parquet"), law_of(home / "two.ogive", home / "t.csv")
    each = ["mean", "q0.05", "q0.5", "q0.95", "lower", "upper"]
    assert found.columns == [f"{name}_{what}" for name in ("y", "z, cm") for what in each]
    assert np.allclose(found["z, cm_mean"], law.mean()[:, 1], rtol=1e-9)
    assert np.allclose(found["z, cm_q0.95"], law.quantiles(0.95)[:, 1, 0], rtol=1e-9)
    assert np.allclose(found["y_upper"], law.interval(0.8)[:, 0, 1], rtol=1e-9)


def test_predict_reads_a_pipe_whatever_columns_it_has_besides(home):
    out, _ = run("predict", home / "one.ogive", "-", "--mean", "--out", "-", stdin=(home / "t.parquet").read_bytes())
    assert np.array_equal(rows_of(out)["y_mean"], law_of(home / "one.ogive", home / "t.csv").mean()[:, 0])


# --- sample, prob, score, info


def test_sample_writes_a_line_a_draw(home, capsys):
    arguments = ["sample", str(home / "two.ogive"), str(home / "new.csv"), "-n", "5", "--seed", "4"]
    assert main(arguments) == 0
    found = rows_of(capsys.readouterr().out)
    assert found.columns == ["row", "y", "z, cm"]
    assert found["row"].to_list() == [row for row in range(7) for _ in range(5)]
    draws = law_of(home / "two.ogive", home / "new.csv").sample(5, 4)
    assert np.array_equal(found["z, cm"].to_numpy().reshape(7, 5), draws[:, :, 1].T)
    assert main([*arguments[:-1], "5"]) == 0
    assert rows_of(capsys.readouterr().out)["y"].to_list() != found["y"].to_list()


def test_prob_is_that_of_the_output_named(home, capsys):
    law = law_of(home / "two.ogive", home / "new.csv").marginal("z, cm")

    def prob(*arguments: str) -> np.ndarray:
        assert main(["prob", str(home / "two.ogive"), str(home / "new.csv"), *arguments]) == 0
        found = rows_of(capsys.readouterr().out)
        assert found.columns == ["probability"]
        return found["probability"].to_numpy()

    assert np.array_equal(prob("--above", "z, cm=30"), law.sf(30.0))
    assert np.array_equal(prob("--below", "z, cm=-30"), law.cdf(-30.0))
    assert np.allclose(prob("--above", "z, cm=-30", "--below", "z, cm=30"), law.cdf(30.0) - law.cdf(-30.0), atol=1e-14)
    far = prob("--above", "z, cm=1e4", "--below", "z, cm=1e9")
    assert np.allclose(far, law.sf(1e4), rtol=1e-3)
    assert (far > 0.0).all()


def test_score_says_how_good_the_model_is(home, capsys):
    assert main(["score", str(home / "two.ogive"), str(home / "t.csv"), "--json"]) == 0
    facts, law = json.loads(capsys.readouterr().out), law_of(home / "two.ogive", home / "t.csv")
    y = columns(read_table(home / "t.csv"), law.output_names).to_numpy()
    assert facts["rows"] == 60
    assert facts["log_likelihood"] == pytest.approx(law.logpdf(y).mean())
    assert facts["crps"] == pytest.approx(dict(zip(law.output_names, law.crps(y).mean(0), strict=True)))
    assert facts["coverage_90"].keys() == {"y", "z, cm"}
    assert 0.0 <= facts["calibration_error"] <= 1.0
    assert main(["score", str(home / "one.ogive"), str(home / "t.parquet")]) == 0
    assert [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "rows", "log likelihood", "crps", "coverage 90", "calibration error",
    ]  # fmt: skip


def test_a_score_that_is_no_number_is_null_in_json(home, tmp_path, capsys):
    model, table = tmp_path / "m.ogive", tmp_path / "t.csv"
    write_table({"x": np.arange(9.0), "y": np.arange(1.0, 10.0)}, table)
    assert main(["fit", str(table), "-t", "y", "--support", "0,10", "--out", str(model), *FAST]) == 0
    write_table({"x": [1.0], "y": [-1.0]}, table)
    capsys.readouterr()
    assert main(["score", str(model), str(table), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log_likelihood"] is None
    assert main(["score", str(model), str(table)]) == 0
    assert "-inf" in capsys.readouterr().out


def test_a_model_without_one_chain_of_outputs_is_scored_but_for_its_calibration(home, tmp_path, capsys):
    table = read_table(home / "t.csv")
    model = ogive.OgiveRegressor(n_members=2, max_epochs=1, order="cycle", random_state=0)
    model.fit(columns(table, ["x 2"]), columns(table, ["y", "z, cm"])).save(tmp_path / "m.ogive")
    table.head(3).write_csv(tmp_path / "few.csv")
    assert main(["score", str(tmp_path / "m.ogive"), str(tmp_path / "few.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calibration_error"] is None


def test_info_says_what_a_model_is(home, capsys):
    assert main(["info", str(home / "two.ogive"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["library_version"] == ogive.__version__
    assert (facts["features"], facts["outputs"]) == (["größe", "x 2"], ["y", "z, cm"])
    assert (facts["members"], facts["epochs"], facts["parameters"]["max_epochs"]) == (2, 3, 3)
    assert main(["info", str(home / "two.ogive")]) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["features"].strip() == "größe, x 2"
    assert lines["parameters"].strip() == "max_epochs 3, n_members 2, random_state 0"  # what is not as by default


def test_a_model_without_names_reads_the_columns_in_their_order(home, tmp_path, capsys):
    table = read_table(home / "t.csv")
    X, y = columns(table, ["größe", "x 2"]).to_numpy(), columns(table, ["y"]).to_numpy()[:, 0]
    model = ogive.OgiveRegressor(n_members=1, max_epochs=1, random_state=0).fit(X, y)
    model.save(tmp_path / "m.ogive")
    table.select("größe", "y", "x 2").write_csv(tmp_path / "t.csv")
    assert main(["predict", str(tmp_path / "m.ogive"), str(tmp_path / "t.csv"), "--mean"]) == 0
    assert np.array_equal(rows_of(capsys.readouterr().out)["y_mean"], model.predict(X))
    assert main(["info", str(tmp_path / "m.ogive")]) == 0
    assert "column 0, column 1" in capsys.readouterr().out
    assert main(["predict", str(tmp_path / "m.ogive"), str(home / "t.csv")]) == 2
    assert "TABLE must have 2 feature columns, for a model fitted without names; got 5" in capsys.readouterr().err


# --- pictures


@pytest.mark.parametrize(("model", "more"), [("one", []), ("two", ["--row", "3"]), ("two", ["--output", "z, cm"])])
def test_plot_writes_a_picture(home, tmp_path, capsys, model, more):
    out = tmp_path / "fig.png"
    assert main(["plot", str(home / f"{model}.ogive"), str(home / "t.csv"), "--out", str(out), *more]) == 0
    assert out.read_bytes().startswith(PNG)
    assert capsys.readouterr().out == f"{out}\n"


def test_plot_needs_no_observed_value(home, tmp_path):
    out = tmp_path / "fig.svg"
    assert main(["plot", str(home / "one.ogive"), str(home / "new.csv"), "--row", "6", "--out", str(out)]) == 0
    assert b"<svg" in out.read_bytes()


# --- the demo


def check_demo(folder: Path, out: str) -> None:
    found = pl.read_csv(folder / "quantiles.csv")
    assert found.height == 10
    assert [*found.columns[4:]] == ["minutes_mean", *(f"minutes_q{q}" for q in (0.05, 0.25, 0.5, 0.75, 0.95))]
    assert (np.diff(found.select(found.columns[5:]).to_numpy(), axis=1) > 0).all()
    assert (folder / "density.png").read_bytes().startswith(PNG)
    assert ogive.load(folder / "model.ogive").output_names_ == ["minutes"]
    for name in ("quantiles.csv", "density.png", "model.ogive"):
        assert name in out


def test_the_demo_writes_its_three_files(tmp_path, monkeypatch, capsys):
    short = functools.partial(ogive.OgiveRegressor, n_members=1, max_epochs=3)
    monkeypatch.setattr(estimator, "OgiveRegressor", short)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the second run finds the folder
        assert main(["demo", "--quiet"]) == 0
    check_demo(tmp_path / "ogive-demo", capsys.readouterr().out)


@pytest.mark.slow
def test_the_demo_tells_its_story_in_under_a_minute(tmp_path):
    started = time.perf_counter()
    out, _ = run("demo", cwd=tmp_path)
    assert time.perf_counter() - started < 60
    check_demo(tmp_path / "ogive-demo", out.decode())
    law = law_of(tmp_path / "ogive-demo" / "model.ogive", tmp_path / "ogive-demo" / "quantiles.csv")
    caught, mean, missed = 9.0 + 1.9 * 18.0 + 2.2, law.mean()[7, 0], 9.0 + 1.9 * 18.0 + 2.2 + 35.0
    density = [law.pdf(minutes)[7] for minutes in (caught, mean, missed)]
    assert min(density[0], density[2]) > 4.0 * density[1]


def test_the_demo_table_is_what_its_script_makes(tmp_path):
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, root / "examples" / "make_demo_table.py", tmp_path], check=True)
    for name in ("journeys.csv", "new_journeys.csv"):
        bundled = root / "src" / "ogive" / "data" / name
        assert (tmp_path / name).read_bytes() == bundled.read_bytes()
        assert bundled.stat().st_size < 100_000


# --- errors: whose they are, in one line

USER_ERRORS = [
    ("nope", "No such command 'nope'"),
    ("fit", "Missing argument 'TABLE'.* Try: ogive fit --help"),
    ("fit t.csv", "Missing option '--target'"),
    ("fit t.csv -t y --members 0", "Invalid value for '--members'"),
    ("fit t.csv -t y --colour red", "No such option: --colour"),
    ("fit none.csv -t y", "'none.csv' cannot be used: No such file or directory"),
    ("fit . -t y", "must end in .csv or .parquet|'.' cannot be used: Is a directory"),
    ("fit t.csv -t yy", "column 'yy' must be in the table; got the columns name, .*Did you mean 'y'"),
    ("fit t.csv -t y --drop nam", "column 'nam' must be in the table; .*Did you mean 'name'"),
    ("fit t.csv -t y --weights nam", "column 'nam' must be in the table"),
    ("fit t.csv -t y", "column 'name' must be numeric; got 'row 0' in row 0"),
    ("fit t.csv -t ,", "targets must name at least one column"),
    ("fit t.csv -t y --drop name --out no/m.ogive", "--out must name a file in a folder that exists"),
    ("fit t.csv -t y --drop name --support low", "--support must be positive or LOW,HIGH; got 'low'"),
    ("fit t.csv -t y --drop name --support 1,2,3", "--support must be positive or LOW,HIGH; got '1,2,3'"),
    ("fit t.csv -t y --drop name --support 0,1", "y must lie in its support"),
    ("fit t.csv -t y --drop name --weights bad", "column 'bad' must be in the table"),
    ("fit one_row.csv -t y", "TABLE must have at least two rows to be fitted; got one"),
    ("fit empty.csv -t y", "'empty.csv' must hold a table; got nothing"),
    ("fit ragged.csv -t y", "must have 2 values in every row, one for each name; got 1 in row 1"),
    ("fit holes.csv -t y", r"column 'x' must have a value in every row; got none in 1 of 3 rows \(first: row 1\)"),
    ("predict none.ogive new.csv", "'none.ogive' cannot be used: No such file"),
    ("predict t.csv new.csv", "'t.csv' must be a model saved by ogive; got another kind of file"),
    ("predict cut.ogive new.csv", "'cut.ogive' must be whole; got a damaged file"),
    ("predict one.ogive none.csv", "'none.csv' cannot be used: No such file"),
    ("predict one.ogive other.csv", "column 'größe' must be in the table; got the columns x 2"),
    ("predict one.ogive hole.csv", r"column 'größe' must have a value in every row; .*\(first: row 1\)"),
    ("predict one.ogive new.csv --quantiles 5,95", "--quantiles must lie strictly between 0 and 1; got 5"),
    ("predict one.ogive new.csv --quantiles .1,x", "--quantiles must be given numbers; got 'x'"),
    ("predict one.ogive new.csv --quantiles nan", "--quantiles must be given numbers; got 'nan'"),
    ("predict one.ogive new.csv --interval 90", "--interval must lie strictly between 0 and 1; got 90"),
    ("predict one.ogive new.csv --out no/p.csv", "--out must name a file in a folder that exists; got 'no/p.csv'"),
    ("predict one.ogive new.csv --out p.xlsx", "must end in .csv or .parquet; got 'p.xlsx'"),
    ("sample one.ogive new.csv -n 0", "Invalid value for '--size' / '-n'"),
    ("prob one.ogive new.csv", "--above and --below must name one output; got none"),
    ("prob two.ogive new.csv --above y=1 --below z=2", "must name one output; got y, z"),
    ("prob one.ogive new.csv --above 3", "--above must be written OUTPUT=VALUE; got '3'"),
    ("prob one.ogive new.csv --above y=high", "--above must be given numbers; got 'high'"),
    ("prob one.ogive new.csv --above y=2 --below y=1", "--above must be less than --below; got 2.0 and 1.0"),
    ("prob one.ogive new.csv --above q=2", "output must be one of .*; got 'q'"),
    ("score one.ogive new.csv", "column 'y' must be in the table"),
    ("info new.csv", "'new.csv' must be a model saved by ogive"),
    ("plot one.ogive new.csv", "Missing option '--out'"),
    ("plot one.ogive new.csv --out f.png --row 7", "--row must lie in 0..6; got 7"),
    ("plot one.ogive new.csv --out f.xyz", "a picture must end in one of .*png.*; got 'f.xyz'"),
    ("plot two.ogive new.csv --out f.png --output q", "output must be one of .*; got 'q'"),
]


@pytest.fixture(scope="module")
def wrong(home) -> Path:
    """Tables and a model with something wrong."""
    for name, text in {
        "one_row.csv": "x,y\n1,2\n",
        "empty.csv": "",
        "ragged.csv": "x,y\n1,2\n3\n",
        "holes.csv": "x,y\n1,2\n,3\n4,5\n",
        "other.csv": "x 2\n1\n",
        "hole.csv": "größe,x 2\n1,2\n,3\n",
    }.items():
        (home / name).write_text(text, encoding="utf-8")
    (home / "cut.ogive").write_bytes((home / "one.ogive").read_bytes()[:-100])
    return home


@pytest.mark.parametrize(("line", "match"), USER_ERRORS, ids=lambda part: part if len(part) < 40 else "")
def test_a_users_error_is_one_line_and_exit_code_2(wrong, monkeypatch, capsys, line, match):
    monkeypatch.chdir(wrong)
    before = sorted(os.listdir(wrong))
    assert main(line.split(" ")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ogive: ")
    assert err.count("\n") == 1
    assert re.search(match, err), err
    assert sorted(os.listdir(wrong)) == before


@pytest.mark.parametrize("line", ["fit t.csv -t yy", "predict one.ogive"])
def test_a_users_error_in_a_process_of_its_own(wrong, line):
    out, err = run(*line.split(), cwd=wrong, code=2)
    assert out == b""
    assert err.startswith("ogive: ")
    assert err.count("\n") == 1


def test_names_with_line_breaks_stay_in_one_line(tmp_path, capsys):
    (tmp_path / "t.csv").write_text('"a\nb",y\nx,1\nz,2\n')
    assert main(["fit", str(tmp_path / "t.csv"), "-t", "y"]) == 2
    assert capsys.readouterr().err.startswith("ogive: column 'a b' must be numeric; got 'x' in row 0")


def broken(*_, **__):
    raise RuntimeError("the moon\nis full")


@pytest.mark.parametrize("debug", [False, True])
def test_a_fault_of_ours_is_said_to_be_ours(home, monkeypatch, capsys, debug):
    monkeypatch.setattr(estimator.OgiveRegressor, "load", broken)
    monkeypatch.setenv("OGIVE_DEBUG", "1" if debug else "")
    assert main(["info", str(home / "one.ogive")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == (
        "ogive: a fault of ogive itself, not of yours: RuntimeError: the moon is full. "
        "Please report it, with what OGIVE_DEBUG=1 shows."
    )
    assert ("Traceback" in err) is debug


def test_a_numerical_failure_is_a_fault_of_ours(home, monkeypatch, capsys):
    def fail(*_):
        raise NumericalError("the inversion must converge; got 3 rows that did not.")

    monkeypatch.setattr(estimator.OgiveRegressor, "predict_dist", fail)
    assert main(["predict", str(home / "one.ogive"), str(home / "new.csv")]) == 1
    assert "fault of ogive itself" in capsys.readouterr().err


def test_a_missing_matplotlib_is_named_with_its_cure(home, tmp_path, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    for line in (["plot", str(home / "one.ogive"), str(home / "new.csv"), "--out", "f.png"], ["demo"]):
        assert main(line) == 2
        assert "pip install 'ogive[plot]'" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
    with pytest.raises(ImportError, match="matplotlib must be installed to draw; got none"):
        plotting.new_axes(1.0, 1.0)


def test_a_file_that_cannot_be_written_is_a_users_error(home, tmp_path, capsys):
    (tmp_path / "p.csv").mkdir()
    assert main(["predict", str(home / "one.ogive"), str(home / "new.csv"), "--out", str(tmp_path / "p.csv")]) == 2
    assert "cannot be used: Is a directory. Check the path" in capsys.readouterr().err


def test_a_full_disk_is_a_users_error_and_leaves_no_model(home, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    arguments = ["fit", str(home / "t.csv"), "-t", "y", "--drop", "name", "--out", str(tmp_path / "m.ogive")]
    assert main([*arguments, *FAST]) == 2
    assert "a file cannot be used: No space left on device. Check" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


# --- pipes and Ctrl-C


def started(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ogive", *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_closed_pipe_is_no_error_to_shout_about(home):
    with started("sample", home / "one.ogive", home / "t.csv", "-n", "5000") as process:
        assert process.stdout.readline() == b"row,y\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_in_training_keeps_the_best_so_far(home, tmp_path):
    arguments = ["fit", home / "t.csv", "-t", "y", "--drop", 'name,w,"z, cm"', "--out", tmp_path / "m.ogive"]
    with started(*arguments, "--max-epochs", "1000000") as process:
        seen = b""
        while b"validation NLL" not in seen:
            seen += (piece := process.stderr.read1())
            assert piece
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"ogive: warning: training was interrupted" in err
    assert b"Traceback" not in err
    assert len(law_of(tmp_path / "m.ogive", home / "new.csv")) == 7
    assert b"outputs" in out


def test_ctrl_c_elsewhere_stops(home):
    with started("predict", home / "one.ogive", "-") as process:
        process.stdin.write(b"a")  # in vain: it waits for the end of the table
        process.stdin.flush()
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=10) == (b"", b"ogive: stopped.\n")
        finally:
            process.kill()
    assert process.returncode == 130


# --- whatever columns users have


@settings(max_examples=6)
@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6).map(str.strip).filter(bool),
        min_size=3, max_size=3, unique=True,
    ),
    scale=st.sampled_from([1e-150, 1.0, 1e150]),
    shift=st.sampled_from([0.0, -1.0, 1e6]),
)  # fmt: skip
def test_any_names_and_scales_go_from_table_to_table(tmp_path_factory, names, scale, shift):
    folder = tmp_path_factory.mktemp("any")
    table, model, out = folder / "t.csv", folder / "m.ogive", folder / "p.csv"
    values = (np.random.default_rng(0).normal(size=(12, 3)) + shift) * scale
    write_table(dict(zip(names, values.T, strict=True)), table)
    target = names[0]
    quoted = '"' + target.replace('"', '""') + '"'
    few = ["--members", "1", "--max-epochs", "1", "--quiet"]
    assert main(["fit", str(table), "--target", quoted, "--out", str(model), *few]) == 0
    assert main(["predict", str(model), str(table), "--quantiles", ".1,.9", "--out", str(out)]) == 0
    found = read_table(out)
    assert found.columns == [f"{target}_q0.1", f"{target}_q0.9"]
    assert np.isfinite(found.to_numpy()).all()
    assert (np.diff(found.to_numpy(), axis=1) > 0).all()
