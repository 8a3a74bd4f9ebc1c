"""A model in one file: safetensors, with a JSON header in its metadata. Nothing is ever unpickled.

The header lists every tensor: a file that is not what was saved is refused, by the name of what differs.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from . import __version__
from .errors import DataError, FileFormatError

__all__ = ["FORMAT_VERSION", "read", "write"]

FORMAT_VERSION = 1
KEY = "ogive"
OURS = ("format_version", "library_version", "tensors")

AGAIN = "Save the model again."


def write(path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write tensors and a header to `path`, all of it or nothing.

    The file appears under its name in one step, when all its bytes are on the disk: whatever goes wrong before,
    even a lost process, leaves the file that was there. The same content gives the same bytes.

    Parameters
    ----------
    path : str or path
    header : mapping
        JSON values by name. Added here: "format_version", "library_version", and "tensors", the list of all
        tensors with their dtype, shape and checksum.
    tensors : mapping
        Tensors by name, on any device; NaN is refused.

    Raises
    ------
    DataError
        When the header is no JSON, or a tensor holds NaN.
    OSError
        When the file cannot be written.
    """
    taken = [name for name in OURS if name in header]
    if taken:
        raise DataError(f"header must leave out {taken[0]!r}, which is added; got a value for it. Rename it.")
    host = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    for name, tensor in host.items():
        if tensor.isnan().any():
            raise DataError(f"tensor '{name}' must be free of NaN; got {_count_nan(tensor)}. Fit again.")
    document = {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        **header,
        "tensors": {name: _description(tensor) for name, tensor in host.items()},
    }
    try:
        text = json.dumps(document, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"header must hold JSON values; got an error: {error}. Pass plain values.") from error
    _replace(Path(os.path.realpath(path)), safetensors.torch.save(host, {KEY: text}))


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what `write` wrote: the header, without its list of tensors, and the tensors, on the CPU.

    Raises
    ------
    FileFormatError
        When the file is no model, is damaged, was changed or comes from a newer version: it names the first
        thing that is wrong.
    OSError
        When the file cannot be read.
    """
    name = f"'{os.fspath(path)}'"
    with open(path, "rb") as file:
        start = file.read(9)
    try:
        with safe_open(path, framework="pt", device="cpu") as opened:
            metadata = opened.metadata() or {}
            # Clones: tensors over the mapped file would change or crash with it.
            tensors = {key: opened.get_tensor(key).clone() for key in opened.keys()}  # noqa: SIM118
    except SafetensorError as error:
        if start[8:] != b"{":
            fact = "another kind of file" if start else "an empty file"
            raise FileFormatError(f"{name} must be a model saved by ogive; got {fact}. Check the path.") from error
        raise FileFormatError(f"{name} must be whole; got a damaged file ({error}). {AGAIN}") from error
    header = _header(metadata, name)
    _check_tensors(header.pop("tensors", None), tensors, name)
    return header, tensors


def _replace(path: Path, data: bytes) -> None:
    """Put `data` at `path` in one step."""
    # Not tempfile: its files are private, and a model is to have the rights of any new file.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _header(metadata: Mapping[str, str], name: str) -> dict[str, Any]:
    """The header of an opened file, of a version that we can read."""
    if KEY not in metadata:
        raise FileFormatError(f"{name} must be a model saved by ogive; got other tensors. Check the path.")
    try:
        header = json.loads(metadata[KEY])
    except json.JSONDecodeError as error:
        raise FileFormatError(f"{name} must have a header in JSON; got none ({error}). {AGAIN}") from error
    if not isinstance(header, dict):
        raise FileFormatError(f"{name} must have a header with names; got a {type(header).__name__}. {AGAIN}")
    version = header.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise FileFormatError(f"{name} must state its format_version; got {version!r}. {AGAIN}")
    if version > FORMAT_VERSION:
        raise FileFormatError(
            f"{name} must be of format version {FORMAT_VERSION} at most; got {version}, "
            f"written by ogive {header.get('library_version')}. Update ogive."
        )
    return header


def _check_tensors(listed: object, tensors: Mapping[str, Tensor], name: str) -> None:
    """Refuse tensors that are not exactly the listed ones."""
    if not isinstance(listed, dict):
        raise FileFormatError(f"{name} must list its tensors; got {type(listed).__name__}. {AGAIN}")
    for key, description in listed.items():
        if key not in tensors:
            raise FileFormatError(f"{name} must hold tensor '{key}'; got none of that name. {AGAIN}")
        if not isinstance(description, list) or len(description) != 3:
            raise FileFormatError(
                f"{name} must list the dtype, shape and checksum of '{key}'; got {description!r}. {AGAIN}"
            )
        tensor = tensors[key]
        for aspect, wanted, found in zip(("dtype", "shape"), description, _description(tensor), strict=False):
            if wanted != found:
                raise FileFormatError(f"{name} must hold tensor '{key}' with {aspect} {wanted}; got {found}. {AGAIN}")
        if tensor.isnan().any():
            raise FileFormatError(
                f"{name} must hold tensor '{key}' with finite numbers; got {_count_nan(tensor)}. {AGAIN}"
            )
        if description != _description(tensor):
            raise FileFormatError(f"{name} must hold tensor '{key}' as saved; got other values. {AGAIN}")
    for key in tensors:
        if key not in listed:
            raise FileFormatError(f"{name} must hold only listed tensors; got '{key}' too. {AGAIN}")


def _description(tensor: Tensor) -> list[Any]:
    """dtype, shape and checksum of a tensor on the CPU, as in the header."""
    content = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
    return [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), zlib.crc32(content)]


def _count_nan(tensor: Tensor) -> str:
    return f"NaN in {int(tensor.isnan().sum())} of {tensor.numel()} values"
