"""Freed memory stays with the process."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

STEPS = """
import resource
import numpy as np
import torch
from ogive import training
from ogive.fitting import TrainingTable, fresh_network
from ogive.nn.architecture import Architecture

torch.set_num_threads(1)
x = np.random.default_rng(0).normal(size=(256, 8))
design = Architecture(8, ((0,),) * 8, ((None, None),), ramps=8)
network = fresh_network(design, TrainingTable(x, x[:, :1], np.ones(256)), torch.Generator().manual_seed(0))
trainer = training.Trainer(network, training.Recipe(dropout=(0.1,) * 8), torch.Generator().manual_seed(0))
rows = training.Rows(network.scale_x(torch.tensor(x)).float(), torch.tensor(x[:, :1]).float(), torch.ones(256))
batch = rows.batch(torch.arange(256).expand(8, -1))
for step in range(20):
    if step == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    trainer.step(*batch)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**thresholds: str) -> int:
    """Page faults of ten training steps in a process of its own, whose C library may be told what to give back."""
    environment = {**os.environ, **thresholds}
    found = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True, env=environment)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory in its own way")
def test_a_step_takes_no_memory_anew_from_the_system():
    given_back = faults(MALLOC_MMAP_THRESHOLD_="131072", MALLOC_TRIM_THRESHOLD_="131072")
    assert faults() < 2000 < given_back
