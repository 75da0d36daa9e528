"""A server that drains: not ready, yet answering, until its time is over."""

import json
import signal
import time

import onnx
import pytest

pytest.importorskip("uvicorn")
grpc = pytest.importorskip("grpc")
from tests.driver.oip.serve_process import serve_neg  # noqa: E402
from tests.driver.oip.served import COUNTING  # noqa: E402
from tests.models import parse  # noqa: E402

SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


def test_a_server_drains_until_its_deadline(tmp_path):
    onnx.save(parse(COUNTING), tmp_path / "counting.onnx")
    with serve_neg(tmp_path, tmp_path / "counting.onnx", "--grace", "1", "--drain", "0.2") as serve:
        tensor = {"name": "n", "shape": [1], "datatype": "INT64", "data": [1 << 40]}
        body = json.dumps({"inputs": [tensor]}).encode()
        head = f"POST /v2/models/counting/infer HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        with (
            serve.connected(serve.http_port) as endless,
            grpc.insecure_channel(serve.grpc) as channel,
        ):
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            assert check(b"", timeout=20) == SERVING
            endless.sendall(head.encode() + body)
            time.sleep(0.2)
            serve.process.send_signal(signal.SIGTERM)
            told_s = time.monotonic()
            while check(b"", timeout=20) == SERVING:
                assert time.monotonic() - told_s < 1
            assert serve.get("/v2/health/ready") == (400, {"ready": False})
            assert serve.get("/v2/health/live") == (200, {"live": True})
            assert serve.get("/v2/models/neg")[0] == 200
            assert serve.process.wait(20) == 0
            assert 1.2 <= time.monotonic() - told_s < 10
