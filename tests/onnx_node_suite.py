"""ONNX's node suite, which takes ten seconds to make and is kept in a file for other processes."""

import fcntl
import os
import pickle
import platform
import tempfile
import warnings
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase

VERSIONS = (onnx.__version__, np.__version__, ml_dtypes.__version__, platform.python_version())


@cache
def node_tests() -> list[TestCase]:
    """Return the cases of ONNX's node suite; making them computes what is expected of each."""
    name = f"tightship-node-suite-{os.getuid()}-{'-'.join(VERSIONS)}.pickle"
    path = Path(tempfile.gettempdir()) / name
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b") as file:
        if os.fstat(file.fileno()).st_uid != os.getuid():
            return made()
        fcntl.flock(file, fcntl.LOCK_EX)  # one process makes them, and the others wait for it
        try:
            return pickle.load(file)
        except (EOFError, pickle.UnpicklingError):
            found = made()
        file.seek(0)
        file.truncate()
        pickle.dump(found, file)
        return found


def made() -> list[TestCase]:
    """Make the cases anew."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(load_model_tests(kind="node"))
