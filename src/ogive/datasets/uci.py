"""The seven UCI tables of the published comparison, from a folder or from the network."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from . import uci_parsers

Array = NDArray[np.float64]
Parser = Callable[[bytes, Sequence[str]], Array]

VARIABLE = "OGIVE_DATA"


@dataclass(frozen=True, eq=False)
class Table:
    """A regression table: X (n, p) and y (n, d) in float64, with the names of their columns."""

    name: str
    X: Array
    y: Array
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """Where a table is published, how that file is read, and what the table must then be.

    The archives change when the repository repacks them, the numbers do not: the digest is of the
    numbers (see `digest`), and it is checked whichever way the table came.
    """

    archive: str
    filename: str
    parse: Parser
    header: str
    n_outputs: int
    digest: str

    @property
    def url(self) -> str:
        """Address of the published archive."""
        return f"https://archive.ics.uci.edu/static/public/{self.archive}.zip"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, outputs last."""
        return tuple(self.header.split(","))


SOURCES = {
    "fish": Source(
        archive="504/qsar+fish+toxicity",
        filename="qsar_fish_toxicity.csv",
        parse=uci_parsers.fish,
        header="CIC0,SM1_Dz,GATS1i,NdsCH,NdssC,MLOGP,LC50",
        n_outputs=1,
        digest="9ae48e7bf95db115ada59231eb1356360c78313b6154dfc05d0184c325b3a76d",
    ),
    "concrete": Source(
        archive="165/concrete+compressive+strength",
        filename="Concrete_Data.xls",
        parse=uci_parsers.concrete,
        header="cement,blast_furnace_slag,fly_ash,water,superplasticizer,coarse_aggregate,fine_aggregate,age,"
        "compressive_strength",
        n_outputs=1,
        digest="a6bf9d4158577a937a00577c379fee3a67d195cab615c65e1dad669b851a6954",
    ),
    "energy": Source(
        archive="242/energy+efficiency",
        filename="ENB2012_data.xlsx",
        parse=uci_parsers.energy,
        header="X1,X2,X3,X4,X5,X6,X7,X8,Y1,Y2",
        n_outputs=2,
        digest="0356610819e4ff1b2df635d783ffbf58b773eb13934ba6cccc4ad860cb7a0188",
    ),
    "parkinsons": Source(
        archive="189/parkinsons+telemonitoring",
        filename="parkinsons_updrs.data",
        parse=uci_parsers.parkinsons,
        header="Jitter(%),Jitter(Abs),Jitter:RAP,Jitter:PPQ5,Jitter:DDP,Shimmer,Shimmer(dB),Shimmer:APQ3,"
        "Shimmer:APQ5,Shimmer:APQ11,Shimmer:DDA,NHR,HNR,RPDE,DFA,PPE,motor_UPDRS,total_UPDRS",
        n_outputs=2,
        digest="1344d16ca067c3ac5742d7b6baca8167fc7ad53d93f7fd35ded08deecb1e110c",
    ),
    "temperature": Source(
        archive="514/bias+correction+of+numerical+prediction+model+temperature+forecast",
        filename="Bias_correction_ucl.csv",
        parse=uci_parsers.temperature,
        header="Present_Tmax,Present_Tmin,LDAPS_RHmin,LDAPS_RHmax,LDAPS_Tmax_lapse,LDAPS_Tmin_lapse,LDAPS_WS,"
        "LDAPS_LH,LDAPS_CC1,LDAPS_CC2,LDAPS_CC3,LDAPS_CC4,LDAPS_PPT1,LDAPS_PPT2,LDAPS_PPT3,LDAPS_PPT4,"
        "lat,lon,DEM,Slope,Solar radiation,Next_Tmax,Next_Tmin",
        n_outputs=2,
        digest="5c5732f73d2b78122ca97678f871b9f04c13960caa318ecdac4885ad18e17e78",
    ),
    "air": Source(
        archive="360/air+quality",
        filename="AirQualityUCI.csv",
        parse=uci_parsers.air,
        header="CO_GT,PT08_S1_CO,NMHC_GT,C6H6_GT,PT08_S2_NMHC,NOx_GT,PT08_S3_NOx,NO2_GT,PT08_S4_NO2,PT08_S5_O3,T,RH,AH",
        n_outputs=3,
        digest="894a894d297af0d38628adb4d3ee2aa8fece991e76e9de41cecc1c7c7c9e21c7",
    ),
    "skillcraft": Source(
        archive="272/skillcraft1+master+table+dataset",
        filename="SkillCraft1_Dataset.csv",
        parse=uci_parsers.skillcraft,
        header="LeagueIndex,Age,HoursPerWeek,TotalHours,APM,SelectByHotkeys,AssignToHotkeys,UniqueHotkeys,"
        "MinimapAttacks,MinimapRightClicks,TotalMapExplored,WorkersMade,UniqueUnitsMade,ComplexUnitsMade,"
        "ComplexAbilitiesUsed,NumberOfPACs,GapBetweenPACs,ActionLatency,ActionsInPAC",
        n_outputs=4,
        digest="4983e9dc8cdfd8994d9348c7e3547a19d120988364f0b0d98e25cf510f6aed9a",
    ),
}

NAMES = tuple(SOURCES)


def load(name: str) -> Table:
    """Load one of the tables in `NAMES`.

    The folder named by the environment variable ``OGIVE_DATA`` comes first: ``NAME.csv`` there has
    one header line and the outputs last. Without that file the published archive is fetched once
    and kept in the user's cache. Either way the numbers must have the digest on record, so that
    every figure is about the same rows.

    Parameters
    ----------
    name : str
        "fish", "concrete", "energy", "parkinsons", "temperature", "air" or "skillcraft".

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If the name is unknown, or the file found does not hold the published numbers.
    FileNotFoundError
        If there is neither the file nor an answer from the network.
    ImportError
        If a package that fetches or reads the published file is not installed.
    """
    if name not in SOURCES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}. Pass one of these names.")
    local = _local(name)
    try:
        path = local or _fetch(name)
        numbers = _verified(name, path, published=local is None)
    except ImportError as error:
        raise ImportError(
            f"{name} must be fetched and read by optional packages; got {str(error)!r} for "
            f"{SOURCES[name].url}. Run pip install 'ogive[bench]', or set {VARIABLE} to a folder "
            f"with {name}.csv."
        ) from error
    columns, d = SOURCES[name].columns, SOURCES[name].n_outputs
    X, y = np.ascontiguousarray(numbers[:, :-d]), np.ascontiguousarray(numbers[:, -d:])
    return Table(name, X, y, columns[:-d], columns[-d:])


def digest(numbers: Array) -> str:
    """Digest of a table: SHA-256 of its rows written as CSV with ten significant digits."""
    # Adding 0.0 turns -0.0 into 0.0, which some files write and others do not.
    lines = (",".join(f"{value:.10g}" for value in row) for row in (numbers + 0.0).tolist())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _local(name: str) -> Path | None:
    """Find the table in the folder of the environment variable."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder) / f"{name}.csv" if folder else None
    return path if path is not None and path.is_file() else None


def _fetch(name: str) -> Path:
    """Fetch the published archive, or find it in the cache."""
    import pooch

    archive, url = f"{name}.zip", SOURCES[name].url
    cache = pooch.create(pooch.os_cache("ogive"), base_url="", registry={archive: None}, urls={archive: url})
    try:
        return Path(cache.fetch(archive))
    except OSError as error:
        raise FileNotFoundError(
            f"{name} must come from a folder or from the network; got no {name}.csv with {VARIABLE}="
            f"{os.environ.get(VARIABLE, '')!r} and {type(error).__name__} for {url}. "
            f"Set {VARIABLE} to a folder with {name}.csv, or try again with a network."
        ) from error


def _verified(name: str, path: Path, *, published: bool) -> Array:
    """Read a file and refuse it unless it holds the numbers on record."""
    source = SOURCES[name]
    data = path.read_bytes()
    try:
        if published:
            numbers = source.parse(uci_parsers.member(data, source.filename), source.columns)
        else:
            numbers = uci_parsers.plain(data, source.columns)
        found = digest(numbers)
        problem = "" if found == source.digest else f"{len(numbers)} rows with digest {found[:12]}"
    except ValueError as error:
        problem = str(error)
    if problem:
        raise ValueError(
            f"{name} must hold the numbers published at {source.url} (digest {source.digest[:12]}); "
            f"got {problem} in {path}. Replace or delete this file."
        )
    return numbers
