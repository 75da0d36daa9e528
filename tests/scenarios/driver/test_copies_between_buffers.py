"""Buffers filled from one another by a client: in one driver, of two, of none."""

import numpy as np
import pytest

from tests.scenarios.driver.test_buffer_uses import STATE, cell, read, states_of
from tests.scenarios.driver.test_feature_levels import client_of, status_of, without
from tests.small_models import dense
from tightship.driver import Client
from tightship.driver.client import device_buffer
from tightship.driver.models.device_buffers import DeviceBuffers
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

MODEL, _ = dense()
GF, IA = ErrorStatus.GENERAL_FAILURE, ErrorStatus.INVALID_ARGUMENT
SHAPE = 2, 3, 4, 5
IMAGE = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)


@pytest.fixture(params=["one", "two", "from none", "to none", "without"])
def ends(request, tmp_path):
    """Two buffers alike: where copies are of a driver, and by way of memory here."""
    offered = [{}, {}]
    if request.param in ("from none", "to none"):
        offered[request.param == "to none"] = without("memory_domains")
    if request.param == "without":
        offered[0] = without("buffer_copies")
    folders = [tmp_path / name for name in "ab"]
    for each in folders:
        each.mkdir()
    with (
        client_of(folders[0], **offered[0]) as one,
        client_of(folders[1], **offered[1]) as other,
    ):
        clients = (one, one) if request.param in ("one", "without") else (one, other)
        yield [
            states_of(client, client.prepare(cell()))[index] for index, client in enumerate(clients)
        ]


def test_a_value_goes_from_buffer_to_buffer(ends):
    source, target = ends
    source.copy_from(STATE)
    target.copy_from(source)
    for each in ends:
        np.testing.assert_array_equal(read(each), STATE)
        np.testing.assert_array_equal(each.value(), STATE)


def test_a_buffer_filled_from_itself_stays_as_it_is(ends):
    for each in ends:
        each.copy_from(STATE)
        each.copy_from(each)
        np.testing.assert_array_equal(read(each), STATE)


@pytest.fixture(params=[{}, without("buffer_copies")], ids=["with the feature", "without"])
def client(request, tmp_path):
    with client_of(tmp_path, **request.param) as connected:
        yield connected


def test_a_copy_that_fails_leaves_nothing(client):
    remote = client.prepare(cell())
    source, target = states_of(client, remote)
    target.copy_from(STATE)
    assert status_of(target.copy_from, source) == GF
    assert status_of(target.value) == GF
    source.copy_from(STATE)
    shorter = client.allocate(inputs=[(remote, 0)])
    assert status_of(shorter.copy_from, source) == IA


def test_within_a_driver_no_memory_of_this_process_is_taken(tmp_path, monkeypatch):
    with client_of(tmp_path) as client:
        source, target = states_of(client, client.prepare(cell()))
        source.copy_from(STATE)
        with monkeypatch.context() as patched:
            patched.setattr(device_buffer, "Segment", None)
            target.copy_from(source)
        np.testing.assert_array_equal(read(target), STATE)


def rows_of(client):
    return client.allocate(inputs=[(client.prepare(MODEL), 0)])


def test_dimensions_that_were_left_open_go_with_the_value(tmp_path):
    with client_of(tmp_path) as client, Client(tmp_path / "driver.sock") as other:
        source, beside, elsewhere = rows_of(client), rows_of(client), rows_of(other)
        for count in (3, 2):
            rows = np.full((count, 32), count, np.float32)
            source.copy_from(rows, rows.shape)
            for each in (beside, elsewhere):
                each.copy_from(source)
                np.testing.assert_array_equal(each.value(), rows)


def test_dimensions_that_a_driver_cannot_say_are_refused(tmp_path):
    with client_of(tmp_path, **without("buffer_copies")) as client:
        source, target = rows_of(client), rows_of(client)
        source.copy_from(np.ones((3, 32), np.float32), (3, 32))
        with pytest.raises(DriverError, match=r"of \[0, 32\]; use `copy_to`"):
            target.copy_from(source)


@pytest.mark.parametrize("source_is_image", [False, True])
@pytest.mark.parametrize("target_is_image", [False, True])
def test_each_buffer_keeps_its_order_of_axes(source_is_image, target_is_image):
    buffers = DeviceBuffers()
    for token, is_image in ((1, source_is_image), (2, target_is_image)):
        if is_image:
            buffers.have_channels_last(token)
    buffers.fill(1, IMAGE.reshape(-1).view(np.uint8), SHAPE)
    before = buffers.reordered_count
    buffers.copy(2, 1, SHAPE)
    assert buffers.reordered_count - before == (source_is_image != target_is_image)
    np.testing.assert_array_equal(buffers.content(2, SHAPE).view("f4").reshape(SHAPE), IMAGE)
