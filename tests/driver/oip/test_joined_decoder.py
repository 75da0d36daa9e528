"""Joined requests for a token of a decoder, whose caches are copied into the rows of a program."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests import decoders
from tests.driver.oip.joining import wait_for
from tightship._core import RunPermits
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.infer_request import InferRequest, InputTensor
from tightship.driver.oip.model_folder import model_folders
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository
from tightship.graph import DType
from tightship.model.step_programs import StepPrograms

PAST = 9


class Decoder:
    """An endpoint of a decoder whose requests are joined, with one permit."""

    def __init__(self, folder):
        place = folder / "decoder" / "1"
        place.mkdir(parents=True)
        (place / "model.onnx").write_bytes(decoders.gpt2(decoders.Size(shared=4)))
        (place.parent / "config.pbtxt").write_text("max_batch_size: 8 dynamic_batching { }")
        self.repository = Repository(lambda: model_folders(folder, lambda *_: {}))
        self.repository.load("decoder")
        regions = RegionFiles(is_enabled=False)
        self.endpoint = InferenceEndpoint(self.repository, regions, RunPermits(1))
        self.model = self.repository.served("decoder").model
        self.threads = ThreadPoolExecutor(8)
        for past in range(3):
            self.model.run(inputs(past, 0))  # other lengths have run before

    def ask(self, number, caller=None):
        tensors = tuple(
            InputTensor(name, DType(str(each.dtype)), each.shape, each.reshape(-1).view("u1").data)
            for name, each in inputs(PAST, number).items()
        )
        request = InferRequest("", tensors, (), is_binary=True, timeout_s=None)
        asking = caller or Caller(self.endpoint.permits)
        return self.threads.submit(self.endpoint.infer, "decoder", None, request, None, asking)

    def close(self):
        self.threads.shutdown()
        self.repository.close()


def inputs(past, number):
    random = np.random.default_rng(number)
    caches = {
        f"past_key_values.{layer}.{part}": random.standard_normal((1, 4, past, 8), np.float32)
        for layer in range(2)
        for part in ("key", "value")
    }
    return {"input_ids": np.array([[number]]), **caches}


@pytest.fixture
def decoder(tmp_path):
    found = Decoder(tmp_path)
    yield found
    found.close()


def test_results_are_those_of_single_runs_within_tolerance(decoder):
    alone = [decoder.model.run(inputs(PAST, number)) for number in range(6)]
    decoder.endpoint.permits.take_free()
    asked = [decoder.ask(number) for number in range(6)]
    wait_for(decoder.endpoint.permits, 6)
    decoder.endpoint.permits.give_back()
    for wanted, each in zip(alone, asked, strict=True):
        for output in each.result(60).outputs:
            np.testing.assert_allclose(output.array, wanted[output.name], 1e-5, 1e-6)
    assert decoder.repository.counts("decoder").run_count == 1


def test_a_caller_that_gives_up_need_not_wait_for_the_run_once_the_caches_were_read(
    decoder, monkeypatch
):
    begun, may_end, run = threading.Event(), threading.Event(), StepPrograms.run

    def slowly(*arguments):
        begun.set()
        assert may_end.wait(60)
        return run(*arguments)

    monkeypatch.setattr(StepPrograms, "run", slowly)
    gone = Caller(decoder.endpoint.permits)
    decoder.endpoint.permits.take_free()
    asked = [decoder.ask(0)]
    wait_for(decoder.endpoint.permits, 1)  # the first to wait is the one that runs both
    asked.append(decoder.ask(1, gone))
    wait_for(decoder.endpoint.permits, 2)
    decoder.endpoint.permits.give_back()
    assert begun.wait(60)
    gone.leave()
    with pytest.raises(OipError, match="cancelled"):
        asked[1].result(60)
    assert not asked[0].done()
    may_end.set()
    assert len(asked[0].result(60).outputs) == 5
