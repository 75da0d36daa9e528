"""An application of ours within another one, as unmodified clients call it."""

import socket
import threading
from contextlib import ExitStack, contextmanager

import numpy as np
import onnx
import pytest

import tightship
from tests.models import parse
from tightship.errors import InputError, TightshipError

uvicorn = pytest.importorskip("uvicorn")
applications = pytest.importorskip("starlette.applications")
routing = pytest.importorskip("starlette.routing")
http = pytest.importorskip("tritonclient.http")
responses = pytest.importorskip("starlette.responses")

WIDTH = 1 << 15
"""Floats of an input: more than a body that is read at once."""
TEXT = f"m (float[{WIDTH}] x) => (float[{WIDTH}] y) {{ y = Neg(x) }}"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("models") / "neg.onnx"
    onnx.save(parse(TEXT), found)
    return found


@contextmanager
def served(app):
    """The address of a server of uvicorn as it comes."""
    config = uvicorn.Config(app, log_config=None, lifespan="on", ws="none")
    server, listener = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def check(url):
    x = np.arange(WIDTH, dtype=np.float32)
    with http.InferenceServerClient(url) as client:
        assert client.is_server_ready()
        assert client.is_model_ready("neg")
        assert client.get_model_metadata("neg")["inputs"][0]["name"] == "x"
        given = http.InferInput("x", [WIDTH], "FP32")
        given.set_data_from_numpy(x)
        for _ in range(3):
            assert np.array_equal(client.infer("neg", [given]).as_numpy("y"), -x)
        with pytest.raises(Exception, match="unknown model"):
            client.infer("other", [given])


@pytest.mark.parametrize(("where", "beneath"), [("/v2", ""), ("/models", "/models")])
def test_an_application_that_is_mounted_answers_unmodified_clients(path, where, beneath):
    async def own(_):
        return responses.PlainTextResponse("own")

    with ExitStack() as opened:
        app = tightship.serve.asgi(path)
        opened.callback(app.close)
        routes = [routing.Route("/own", own), routing.Mount(where, app)]
        address = opened.enter_context(served(applications.Starlette(routes=routes)))
        check(f"{address}{beneath}")


def test_an_application_is_a_server_of_its_own(path):
    app = tightship.serve.asgi({"neg": path})
    with served(app) as address:
        check(address)
    app.close()
    app.close()


def test_a_body_above_the_limit_is_refused(path):
    app = tightship.serve.asgi(path, max_body=1000)
    given = http.InferInput("x", [WIDTH], "FP32")
    given.set_data_from_numpy(np.zeros(WIDTH, np.float32))
    with (
        served(app) as address,
        http.InferenceServerClient(address) as client,
        pytest.raises(Exception, match=r"may have 1000 bytes|closed|reset|pipe"),
    ):
        client.infer("neg", [given])
    app.close()


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="Model `neg` is a `list`; give the path"):
        tightship.serve.asgi({"neg": []})
    with pytest.raises(InputError, match="no models"):
        tightship.serve.asgi({})
    with pytest.raises(TightshipError):
        tightship.serve.asgi(tmp_path / "none.onnx")
