"""Inferences over gRPC that wait for their permits without threads: deadlines and departures."""

import threading
from contextlib import ExitStack

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn")
from tests.driver.oip.endpoint_setting import Setting, X  # noqa: E402
from tests.driver.oip.serve_process import PATIENCE_S  # noqa: E402
from tests.driver.test_run_permits import until  # noqa: E402
from tightship.driver.oip.grpc.serving import SERVICE, GrpcServer  # noqa: E402
from tightship.driver.oip.limits import EndpointLimits  # noqa: E402
from tightship.driver.oip.schema import message_classes  # noqa: E402

COUNT = 20
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
CLASSES = message_classes()


class Server:
    """A server of gRPC in this process, whose only permit is taken."""

    def __init__(self, folder, opened):
        self._setting = Setting(folder)
        opened.callback(self._setting.close)
        self.endpoint = self._setting.endpoint
        server = self.server = GrpcServer(self.endpoint, EndpointLimits(), "127.0.0.1", 0)
        opened.callback(server.join)
        opened.callback(server.begin_stop)
        server.start()
        channel = opened.enter_context(grpc.insecure_channel(f"127.0.0.1:{server.port}"))
        self.channel = channel
        self._call = channel.unary_unary(f"/{SERVICE}/ModelInfer")
        assert self.endpoint.permits.take_free()

    def ask(self, model="neg", timeout_us=0):
        """Begin a call; return it once it waits."""
        request = CLASSES["ModelInferRequest"](model_name=model)
        tensor = request.inputs.add(name="x", datatype="FP32", shape=[1, 4])
        tensor.contents.fp32_contents.extend(X.tolist())
        if timeout_us:
            request.parameters["timeout"].int64_param = timeout_us
        before = self.waiting_count
        future = self._call.future(request.SerializeToString(), timeout=PATIENCE_S)
        if model == "neg":
            until(lambda: self.waiting_count > before or future.done())
        return future

    @property
    def waiting_count(self):
        return self._setting.count().pending_count

    @property
    def counts(self):
        found = self._setting.count()
        return found.success_count, found.fail_count


@pytest.fixture
def server(tmp_path):
    with ExitStack() as opened:
        found = Server(tmp_path, opened)
        yield found


def result(call):
    answer = CLASSES["ModelInferResponse"].FromString(call.result())
    return np.frombuffer(answer.raw_output_contents[0], np.float32)


def pool_threads():
    return sum(each.name.startswith("tightship-grpc_") for each in threading.enumerate())


def test_calls_that_wait_take_no_thread_and_are_answered_once_there_is_a_permit(server):
    asked = [server.ask() for _ in range(COUNT)]
    assert (server.waiting_count, pool_threads() < COUNT // 2) == (COUNT, True)
    server.endpoint.permits.give_back()
    for each in asked:
        assert np.array_equal(result(each), -X)
    until(lambda: server.endpoint.permits.is_free)
    assert server.counts == (COUNT, 0)


def test_a_deadline_is_kept_while_a_call_waits(server):
    call = server.ask(timeout_us=20_000)
    assert (call.code(), call.details()) == (UNAVAILABLE, "Request timeout expired")
    assert (server.counts, server.waiting_count) == ((0, 1), 0)


def test_a_call_that_is_cancelled_while_it_waits_never_runs_and_counts(server):
    call, other = server.ask(), server.ask()
    call.cancel()
    until(lambda: server.waiting_count == 1)
    server.endpoint.permits.give_back()
    assert np.array_equal(result(other), -X)
    until(lambda: server.counts == (1, 1))


def test_all_that_wait_are_refused_once_the_server_must_end(server):
    asked = [server.ask() for _ in range(3)]
    server.endpoint.abandon()
    assert {each.code() for each in asked} == {UNAVAILABLE}
    assert server.waiting_count == 0


def test_a_model_that_is_unknown_is_refused_at_once(server):
    assert server.ask("other").code() is grpc.StatusCode.NOT_FOUND


def test_a_call_that_is_cancelled_before_its_message_came_ends_without_an_error(server, caplog):
    never = threading.Event()
    call = server.channel.stream_unary(f"/{SERVICE}/ModelInfer").future(
        each for each in range(1) if never.wait(PATIENCE_S) and each
    )
    until(lambda: server.server._slots._open)
    call.cancel()
    until(lambda: not server.server._slots._open)
    never.set()
    assert server.ask("other").code() is grpc.StatusCode.NOT_FOUND
    assert [each.getMessage() for each in caplog.records if each.name.startswith("grpc")] == []
