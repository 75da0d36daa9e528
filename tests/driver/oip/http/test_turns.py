"""Requests that come at once: which are run together, and what becomes of each."""

import json
import threading
from contextlib import ExitStack, suppress

import numpy as np
import pytest

pytest.importorskip("uvicorn")
from tests.driver.oip.http_setting import LIMITS
from tests.driver.oip.http_setting import Serving as HttpServing
from tests.driver.oip.joining import BATCHING, Setting
from tightship.driver.oip import quick_runs
from tightship.driver.oip.admission.gate import OPEN_ENTRY, Entry, Gate
from tightship.driver.oip.admission.quotas import Quotas
from tightship.driver.oip.batch_sizes import KEPT_AFTER
from tightship.driver.oip.http import calls, turn, turns
from tightship.driver.oip.http.serving import HttpServer
from tightship.driver.oip.http.turn import Turn
from tightship.driver.oip.joining_gain import JoiningGain
from tightship.driver.oip.monitor import Monitor
from tightship.model import Model


class Client:
    """A connection, and a file of what comes, as several answers may come at once."""

    def __init__(self, connection):
        self.connection, self.file = connection, connection.makefile("rb")

    def sendall(self, data):
        self.connection.sendall(data)

    def close(self):
        self.file.close()
        self.connection.close()

    def answer(self):
        """Return the status and the tensors of an answer, or what it says instead."""
        status = int(self.file.readline().split()[1])
        lines = iter(self.file.readline, b"\r\n")
        said = dict(line.decode().rstrip().lower().split(": ") for line in lines)
        body = self.file.read(int(said.get("content-length", 0)))
        return status, body[int(said.get("inference-header-content-length", 0)) :]

    def rows(self):
        """Return the rows of an answer, by their first values."""
        status, body = self.answer()
        assert status == 200, body
        return np.frombuffer(body, np.float32)[::16].tolist()


class Serving(Setting):
    """A server in this process of a model whose requests are joined, and eight clients."""

    def __init__(self, folder, opened, config=BATCHING, count=8, entry=OPEN_ENTRY):
        super().__init__(folder, config)
        monitor = Monitor(self.endpoint, folder / "no.sock")
        self.server = HttpServer(self.endpoint, LIMITS, ("127.0.0.1", 0), monitor, entry)
        self.server.start()
        self.clients = [Client(HttpServing.connected(self)) for _ in range(count)]
        for each in self.clients:
            opened.callback(each.close)
        for number, each in enumerate(self.clients):  # known to be quick from now on
            each.sendall(self.request([number]))
            assert each.rows() == [number]

    def request(self, rows, index=0, **said):
        """Return the bytes of a request for rows of a number, each times an entry of the table."""
        given = np.repeat(np.asarray(rows, np.float32), 16).reshape(-1, 16)
        arrays = {"x": ("FP32", given), "i": ("INT64", np.full(len(rows), index, np.int64))}
        inputs = [
            {
                "name": name, "datatype": datatype, "shape": list(array.shape),
                "parameters": {"binary_data_size": array.nbytes},
            }
            for name, (datatype, array) in arrays.items()
        ]  # fmt: skip
        parameters = {"binary_data_output": True, **said}
        head = json.dumps({"inputs": inputs, "parameters": parameters}).encode()
        body = head + b"".join(array.tobytes() for _, array in arrays.values())
        lines = (
            "POST /v2/models/rows/infer HTTP/1.1\r\nHost: localhost\r\n"
            f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return lines.encode() + body

    def ask_at_once(self, requests, meanwhile=lambda: None):
        """Have requests of different clients come while the event loop is busy."""
        is_busy, let_go = threading.Event(), threading.Event()

        def be_busy():
            is_busy.set()
            let_go.wait(20)

        self.server._loop.call_soon_threadsafe(be_busy)
        assert is_busy.wait(20)
        for client, request in zip(self.clients, requests, strict=False):
            client.sendall(request)
        meanwhile()
        let_go.set()

    def ask_planned(self, count):
        """Have batches of a size run until the program for it is there."""
        for _ in range(KEPT_AFTER):
            self.ask_at_once([self.request([n]) for n in range(count)])
            assert [each.rows() for each in self.clients[:count]] == [[n] for n in range(count)]

    def stop(self):
        with suppress(RuntimeError):  # its loop has ended with a test that stopped it
            self.server.begin_stop()
        self.server.join()


@pytest.fixture
def opened(monkeypatch):
    """Stack of what is open; joining always pays, and each run is quick."""
    monkeypatch.setattr(JoiningGain, "_decided", lambda _: True)
    monkeypatch.setattr(turn, "LEFT_OUT", 0)
    monkeypatch.setattr(quick_runs, "QUICK_NS", 1 << 60)
    with ExitStack() as found:
        yield found


@pytest.fixture
def serving(tmp_path, opened):
    found = Serving(tmp_path, opened)
    yield found
    found.stop()
    found.close()


@pytest.fixture
def runs(monkeypatch):
    """Rows of each run, and the thread that it ran in."""
    found, run = [], Model.run

    def noted(model, inputs, **options):
        found.append((len(inputs["x"]), threading.current_thread()))
        return run(model, inputs, **options)

    monkeypatch.setattr(Model, "run", noted)
    return found


def test_requests_of_one_turn_are_run_together(serving, runs):
    serving.ask_planned(8)
    runs.clear()
    serving.ask_at_once([serving.request([n], n % 4) for n in range(8)])
    assert [each.rows() for each in serving.clients] == [[n * (n % 4 + 1)] for n in range(8)]
    assert runs == [(8, serving.server._thread)]
    assert serving.endpoint.permits.taken_count == 0
    counts = serving.repository.counts("rows")
    assert counts.joined_count == 7 * (KEPT_AFTER + 1)
    assert counts.pending_count == 0


def test_a_batch_that_must_be_planned_keeps_no_other_client_waiting(serving, runs):
    serving.ask_planned(4)
    assert {size for size, _ in runs} == {4}
    assert serving.server._thread not in {thread for _, thread in runs}


def test_a_client_alone_is_never_kept(serving, monkeypatch):
    monkeypatch.setattr(turns, "Turn", None)  # so that none can begin
    client = serving.clients[-1]
    for number in range(5):
        client.sendall(serving.request([number]))
        assert client.rows() == [number]


def test_requests_beyond_the_largest_batch_are_of_the_next(serving, runs):
    serving.ask_planned(8)
    runs.clear()
    serving.ask_at_once([serving.request([n, 10 + n, 20 + n]) for n in range(8)])
    answers = [each.rows() for each in serving.clients]
    assert answers == [[n, 10 + n, 20 + n] for n in range(8)]
    assert sum(size for size, _ in runs) >= 24
    assert max(size for size, _ in runs) <= 8


@pytest.mark.parametrize("wrong", [{"index": 9}, {"rows": [1, 2]}, {"rows": list(range(9))}])
def test_a_wrong_request_fails_alone(serving, wrong):
    serving.ask_planned(8)
    bad = serving.request(**{"rows": [5], **wrong})
    if wrong == {"rows": [1, 2]}:  # of two rows, of which it has one
        bad = bad.replace(b'"shape": [2, 16]', b'"shape": [1, 16]')
    requests = [serving.request([n]) for n in range(8)]
    requests[3] = bad
    serving.ask_at_once(requests)
    for number, client in enumerate(serving.clients):
        if number == 3:
            assert client.answer()[0] == 400
        else:
            assert client.rows() == [number]
    assert serving.endpoint.permits.taken_count == 0


def test_an_error_of_ours_fails_one_request_alone(serving, monkeypatch):
    serving.ask_planned(8)
    encode = calls.encode

    def failing(name, version, identifier, outputs):
        if outputs[0].array[0, 0] == 3:
            raise RuntimeError("ours")
        return encode(name, version, identifier, outputs)

    monkeypatch.setattr(calls, "encode", failing)
    serving.ask_at_once([serving.request([n]) for n in range(8)])
    assert serving.clients[3].answer()[0] == 500
    others = [each for number, each in enumerate(serving.clients) if number != 3]
    assert [each.rows() for each in others] == [[0], [1], [2], [4], [5], [6], [7]]


def test_a_request_with_a_time_limit_is_not_kept(serving, runs):
    serving.ask_planned(8)
    runs.clear()
    serving.ask_at_once([serving.request([n], timeout=10_000_000) for n in range(8)])
    assert [each.rows() for each in serving.clients] == [[n] for n in range(8)]
    assert [size for size, _ in runs] == [1] * 8


def test_without_a_permit_requests_wait_as_others_do(serving):
    serving.ask_planned(8)
    permits = serving.endpoint.permits
    serving.ask_at_once([serving.request([n]) for n in range(8)], permits.take_free)
    serving.wait_for(8)
    permits.give_back()
    assert [each.rows() for each in serving.clients] == [[n] for n in range(8)]
    assert permits.taken_count == 0


def test_a_permit_that_goes_within_the_turn_is_waited_for(serving, monkeypatch):
    """A thread may take the last permit while requests of the turn are read."""
    serving.ask_planned(8)
    permits, add = serving.endpoint.permits, Turn.add

    def taking(turn, *given):
        permits.take_free()
        return add(turn, *given)

    monkeypatch.setattr(Turn, "add", taking)
    serving.ask_at_once([serving.request([n]) for n in range(8)])
    serving.wait_for(8)
    monkeypatch.undo()
    permits.give_back()
    assert [each.rows() for each in serving.clients] == [[n] for n in range(8)]


def test_a_client_that_leaves_within_the_turn_harms_none(serving):
    serving.ask_planned(8)
    requests = [serving.request([n]) for n in range(8)]
    serving.ask_at_once(requests, serving.clients[2].close)
    left = [each for number, each in enumerate(serving.clients) if number != 2]
    assert [each.rows() for each in left] == [[0], [1], [3], [4], [5], [6], [7]]


def test_requests_that_have_come_are_answered_before_the_end(serving):
    serving.ask_planned(8)
    serving.ask_at_once([serving.request([n]) for n in range(8)], serving.server.begin_stop)
    assert [each.rows() for each in serving.clients] == [[n] for n in range(8)]


def test_requests_for_a_model_that_is_unloaded_meanwhile_are_refused(serving, monkeypatch):
    serving.ask_planned(8)
    answer = type(serving.endpoint).infer_together

    def unloading(endpoint, *given):
        serving.repository.unload("rows")
        return answer(endpoint, *given)

    monkeypatch.setattr(type(serving.endpoint), "infer_together", unloading)
    serving.ask_at_once([serving.request([n]) for n in range(8)])
    assert {each.answer()[0] for each in serving.clients} == {503}
    assert serving.endpoint.permits.taken_count == 0


def test_a_model_without_batches_is_answered_as_before(tmp_path, opened, runs):
    found = Serving(tmp_path, opened, "max_batch_size: 8")
    runs.clear()
    found.ask_at_once([found.request([n]) for n in range(8)])
    assert [each.rows() for each in found.clients] == [[n] for n in range(8)]
    assert [size for size, _ in runs] == [1] * 8
    found.stop()
    found.close()


def test_requests_of_a_turn_are_counted_by_quotas_and_logged(tmp_path, opened, runs):
    logged = []
    entry = Entry(gate=Gate(quotas=Quotas(concurrent_max=6)), sinks=(logged.append,))
    found = Serving(tmp_path, opened, entry=entry)
    runs.clear()
    found.ask_at_once([found.request([n]) for n in range(8)])
    answers = [each.answer() for each in found.clients]
    assert [status for status, _ in answers] == [200] * 6 + [429] * 2
    assert [np.frombuffer(rows, np.float32)[0] for _, rows in answers[:6]] == list(range(6))
    assert [size for size, _ in runs] == [8]  # of six requests, as a batch of the next power of two
    found.stop()
    assert sorted(each.status for each in logged) == [200] * 14 + [429] * 2
    assert found.endpoint.permits.taken_count == 0
    found.close()


def test_requests_in_pieces_and_behind_each_other_are_answered_in_order(serving):
    serving.ask_planned(8)
    for client in serving.clients:
        client.sendall(b"".join(serving.request([n]) for n in range(4)))
    for number in range(4):
        assert [each.rows() for each in serving.clients] == [[number]] * 8
    client = serving.clients[0]
    head, end, body = serving.request([7]).partition(b"\r\n\r\n")
    client.sendall(head.replace(b"Host", b"Expect: 100-continue\r\nHost") + end)
    assert client.answer()[0] == 100
    client.sendall(body)
    assert client.rows() == [7]
