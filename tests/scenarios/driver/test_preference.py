"""Execution preference of a model, which decides on the threads of its kernels."""

import os

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.scenarios.driver.test_hostile_clients import NoNames
from tests.small_models import dense, dense_result
from tightship._core import StopFlag
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.models.registry import Models
from tightship.driver.service.effects import PrepareModel
from tightship.driver.types.model import ModelFile
from tightship.driver.types.pools import READ, Pool, PoolMode
from tightship.driver.types.request import Extent
from tightship.driver.types.status import ErrorStatus, ExecutionPreference

MODEL, WEIGHTS = dense(batch=4)


@pytest.mark.parametrize("preference", ExecutionPreference)
def test_a_fast_single_answer_takes_all_threads(preference):
    file = new_segment(len(MODEL), MODEL)
    extent = Extent((1, file), 0, len(MODEL))
    pool = Pool(3, "ashmem", extent, READ, PoolMode.SEALED, file, is_decodable=True)
    models = Models(Mappings(FileProber()), NoNames(), None, threads=2)
    asked = PrepareModel(5, ModelFile(1, 3, 0, len(MODEL)), (pool,), preference, -1, None)
    assert models.prepare(asked, StopFlag()).status is ErrorStatus.NONE
    is_fast = preference is ExecutionPreference.FAST_SINGLE_ANSWER
    assert models[5].model._lowered.threads == (2 if is_fast else 1)
    models.drop(5)
    os.close(file)


def test_each_preference_computes_the_same(tmp_path):
    x = np.random.default_rng(1).standard_normal((4, 32), np.float32)
    with driver(tmp_path) as running, running.client() as client:
        for preference in ExecutionPreference:
            model = client.prepare(MODEL, preference=preference)
            np.testing.assert_allclose(
                model.execute([x])[0], dense_result(x, WEIGHTS), rtol=1e-4, atol=1e-4
            )
