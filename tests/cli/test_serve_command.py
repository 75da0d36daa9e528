"""`tightship serve` as a process: one copy of a model behind all of its endpoints."""

import argparse
import builtins
import resource
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from socket import create_connection

import numpy as np
import onnx
import pytest

from tests.models import parse
from tightship.cli.argument_types import address
from tightship.cli.arguments import parser
from tightship.cli.main import main
from tightship.driver.client.client import Client
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.repository import Repository
from tightship.errors import DriverError, InputError

COMMAND = (sys.executable, "-m", "tightship.cli", "serve")
X = np.array([[-1, 2, -3, 4]], np.float32)


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    save(folder / "relu.onnx", "Relu")
    return folder


def save(path, operator):
    onnx.save(parse(f"m (float[1,4] x) => (float[1,4] y) {{ y = {operator}(x) }}"), path)


@contextmanager
def served(*options):
    """A process, where its socket is, and where the others listen."""
    command = [*COMMAND, "--grace", "0", *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.readline().partition(" at ")[2]
            yield process, [each.strip().rpartition("//")[2] for each in said.split(",")]
        finally:
            process.terminate()
            assert process.wait(60) == 0


def get(place, path):
    with urllib.request.urlopen(f"http://{place}{path}", timeout=30) as response:
        return response.read().decode()


def post(place, path):
    request = urllib.request.Request(f"http://{place}{path}", data=b"{}", method="POST")
    urllib.request.urlopen(request, timeout=30).close()


def test_both_endpoints_run_one_copy_of_a_model(models, tmp_path):
    pytest.importorskip("uvicorn")
    grpc = pytest.importorskip("tritonclient.grpc")
    socket = tmp_path / "socket"
    with served(models, "--socket", socket, "--http", "0", "--grpc", "0") as (_, places):
        given = grpc.InferInput("x", [1, 4], "FP32")
        given.set_data_from_numpy(X)
        with grpc.InferenceServerClient(places[2]) as client:
            assert np.array_equal(client.infer("relu", [given]).as_numpy("y"), np.maximum(X, 0))
        with Client(socket) as client:
            assert np.array_equal(client.prepare_named("relu").execute([X])[0], np.maximum(X, 0))
        assert 'nv_inference_count{model="relu",version="1",face="protocol"} 1\n' in get(
            places[1], "/metrics"
        )


def test_a_request_may_have_as_many_bytes_as_the_server_is_set_to(models, tmp_path):
    pytest.importorskip("uvicorn")
    http = pytest.importorskip("tritonclient.http")
    grpc = pytest.importorskip("tritonclient.grpc")
    save_open(models / "wide.onnx", "x", 1)
    options = ("--shape=x=1x1", "--max-body", "1MiB", "--socket", tmp_path / "socket")
    with served(models, *options, "--http", "0", "--grpc", "0") as (_, places):
        for module, place, rows_max in ((http, places[1], 1 << 18), (grpc, places[2], 1 << 19)):
            with module.InferenceServerClient(place) as client:
                for rows, is_refused in ((rows_max - 100, False), (rows_max, True)):
                    given = module.InferInput("x", [rows, 1], "FP32")
                    given.set_data_from_numpy(np.ones((rows, 1), np.float32))
                    if is_refused:
                        with pytest.raises(module.InferenceServerException, match=r"max"):
                            client.infer("wide", [given])
                    else:
                        assert client.infer("wide", [given]).as_numpy("y").shape == (rows, 1)


def test_as_many_clients_may_be_busy_as_the_server_is_set_to(models, tmp_path):
    pytest.importorskip("uvicorn")
    options = ("--max-connections", "1", "--socket", tmp_path / "socket", "--http", "0")
    with served(models, *options) as (_, places):
        host, _, port = places[1].partition(":")
        with create_connection((host, int(port)), timeout=20) as busy:
            head = b"POST /v2/models/relu/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
            busy.sendall(head % (2 << 20) + bytes(1 << 20))
            with pytest.raises(urllib.error.HTTPError) as refused:
                get(places[1], "/v2")
            refused.value.close()
            assert refused.value.code == 503
        get(places[1], "/v2")


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        ("--max-connections", "0", "`0` is not a count; write a whole number from 1"),
        ("--max-connections", "many", "`many` is not a count"),
        ("--max-connections", "600", "needs 1200 open files, two for each"),
        ("--max-body", "0", "`0` is less than a byte"),
        ("--max-body", "64 stones", "`64 stones`"),
    ],
)
def test_a_limit_that_is_none_is_refused_by_name(models, capsys, monkeypatch, option, given, said):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    try:
        code = main(["serve", str(models), "--http", "0", option, given])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    told = capsys.readouterr().err
    assert option in told
    assert said in told


def test_a_shape_is_planned_for_and_requests_may_have_others(models, tmp_path):
    pytest.importorskip("uvicorn")
    http = pytest.importorskip("tritonclient.http")
    onnx.save(parse("m (float[n,4] x) => (float[n,4] y) { y = Relu(x) }"), models / "relu.onnx")
    socket = tmp_path / "socket"
    with served(models, "--shape", "x=1x4", "--socket", socket, "--http", "0") as (_, places):
        given = http.InferInput("x", [3, 4], "FP32")
        given.set_data_from_numpy(np.repeat(X, 3, axis=0))
        with http.InferenceServerClient(places[1]) as client:
            assert client.infer("relu", [given]).as_numpy("y").shape == (3, 4)


def save_open(path, name, columns):
    text = f"m (float[n,{columns}] {name}) => (float[n,{columns}] y) {{ y = Relu({name}) }}"
    onnx.save(parse(text), path)


def test_models_with_open_inputs_of_their_own_are_served_together(models, tmp_path, capsys):
    pytest.importorskip("uvicorn")
    save_open(models / "wide.onnx", "x", 8)
    save_open(models / "narrow.onnx", "x", 2)
    save_open(models / "other.onnx", "z", 3)
    command, folder = ["serve", str(models), "--socket", str(tmp_path / "socket")], str(models)
    for wrong in ("wide:z=1x8", "z=1x3x3", "x=1x3", "unknown=1"):
        assert main([*command, "--shape", wrong]) == 2
        said = capsys.readouterr().err
        assert f"`--shape {wrong}` fits no input" in said
        assert "`wide:x`" in said
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    assert main(["serve", str(broken), *command[2:], "--shape", "x=1x2"]) == 2
    assert f"`{broken}` is not an ONNX model" in capsys.readouterr().err
    shapes = ("--shape=x=1x2", "--shape=wide:x=1x8", "--shape=z=1x3", "--shape=x=1x4")
    with served(folder, *shapes, "--socket", tmp_path / "socket", "--http", "0") as (_, places):
        with Client(tmp_path / "socket") as client:
            for name, columns in (("wide", 8), ("narrow", 2), ("other", 3), ("relu", 4)):
                given = np.ones((1, columns), np.float32)
                assert np.array_equal(client.prepare_named(name).execute([given])[0], given)
        save_open(models / "later.onnx", "x", 2)
        post(places[1], "/v2/repository/models/later/load")
        (models / "broken.onnx").write_bytes(b"no model")
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post(places[1], "/v2/repository/models/broken/load")


def test_a_folder_is_a_repository_that_may_gain_models(models, tmp_path):
    pytest.importorskip("uvicorn")
    socket = tmp_path / "socket"
    with served(models, "--socket", socket, "--http", "0") as (_, places), Client(socket) as client:
        held = client.prepare_named("relu")
        save(models / "neg.onnx", "Neg")
        post(places[1], "/v2/repository/models/neg/load")
        assert np.array_equal(client.prepare_named("neg").execute([X])[0], -X)
        post(places[1], "/v2/repository/models/relu/unload")
        assert np.array_equal(held.execute([X])[0], np.maximum(X, 0))
        with pytest.raises(DriverError, match="not ready"):
            client.prepare_named("relu")
        shutil.copy(models / "neg.onnx", models / "relu.onnx")
        post(places[1], "/v2/repository/models/relu/load")
        assert np.array_equal(client.prepare_named("relu").execute([X])[0], -X)


def test_a_folder_may_lose_all_of_its_models_and_itself(models, tmp_path):
    pytest.importorskip("uvicorn")
    with served(models, "--socket", tmp_path / "socket", "--http", "0") as (_, places):
        for lose in ((models / "relu.onnx").unlink, models.rmdir):
            lose()
            assert '"name": "models"' not in get(places[1], "/status")
            post(places[1], "/v2/repository/index")
            with pytest.raises(urllib.error.HTTPError, match="400"):
                post(places[1], "/v2/repository/models/relu/load")


def test_two_models_of_one_name_that_come_later_are_a_refusal_that_names_both():
    def clashing():
        raise InputError("`a/x.onnx` and `b/x.onnx` would both be called `x`; rename one.")

    repository = Repository(dict)
    repository._find = clashing
    with pytest.raises(OipError, match=r"a/x\.onnx"):
        repository.index()
    with pytest.raises(OipError, match=r"b/x\.onnx"):
        repository.load("x")


def test_a_model_that_is_held_is_closed_by_the_last_to_let_it_go(models):
    repository = Repository(lambda: {"relu": ModelSource(models / "relu.onnx")})
    repository.load("relu")
    first, second = repository.hold("relu"), repository.hold("relu")
    assert first is second is repository.served("relu").model
    repository.unload("relu")
    with pytest.raises(OipError, match="not ready"):
        repository.hold("relu")
    repository.release(first)
    assert not first.is_closed
    repository.release(second)
    assert first.is_closed


def test_letting_go_of_a_model_that_stays_closes_nothing(models):
    repository = Repository(lambda: {"relu": ModelSource(models / "relu.onnx")})
    repository.load("relu")
    repository.release(repository.hold("relu"))
    assert not repository.served("relu").model.is_closed
    repository.close()
    with pytest.raises(OipError, match="not ready"):
        repository.served("relu")


def test_an_interrupt_ends_it_as_well(models, tmp_path):
    with served(models, "--socket", tmp_path / "socket") as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert not (tmp_path / "socket").exists()


@pytest.mark.parametrize(("endpoint", "package"), [("http", "httptools"), ("grpc", "grpc")])
def test_a_package_that_is_not_there_is_named(
    models, tmp_path, monkeypatch, capsys, endpoint, package
):
    imported = builtins.__import__

    def refuse(name, *more):
        if name == package:
            raise ModuleNotFoundError(name=name)
        return imported(name, *more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for module in ("http.serving", "http.connection", "http.reading", "grpc.serving"):
        monkeypatch.delitem(sys.modules, f"tightship.driver.oip.{module}", raising=False)
    options = ["serve", str(models), "--socket", str(tmp_path / "socket"), f"--{endpoint}", "0"]
    assert main(options) == 2
    said = capsys.readouterr().err
    assert f"needs the package `{package}`; pip install 'tightship[serve]'" in said


def test_a_port_that_is_taken_is_named(models, tmp_path, capsys):
    pytest.importorskip("uvicorn")
    pytest.importorskip("grpc")
    with served(models, "--socket", tmp_path / "a", "--http", "0", "--grpc", "0") as (_, places):
        for endpoint, place in zip(("http", "grpc"), places[1:], strict=True):
            options = [
                "serve",
                str(models),
                "--socket",
                str(tmp_path / "b"),
                f"--{endpoint}",
                place,
            ]
            assert main(options) == 2
            assert f"cannot listen at `{place}`" in capsys.readouterr().err


def test_an_address_is_a_port_at_loopback_unless_it_says_more():
    assert address("8000") == ("127.0.0.1", 8000)
    assert address("0.0.0.0:80") == ("0.0.0.0", 80)
    assert address("[::1]:80") == ("::1", 80)
    for text in ("", "host", "host:", "::1:80", "[host]:80", "host:65536", "host:-1"):
        with pytest.raises(argparse.ArgumentTypeError):
            address(text)


def test_a_time_of_grace_is_given_by_default():
    assert parser().parse_args(["serve"]).grace == 5
    assert parser().parse_args(["serve", "--grace", "0"]).grace == 0
    assert parser().parse_args(["serve", "--grace", "2.5"]).grace == 2.5


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        ("--grace", "-1", "`-1` is not a time"),
        ("--grace", "soon", "`soon` is not a time"),
        ("--drain", "-0.5", "`-0.5` is not a time"),
        ("--drain", "nan", "`nan` is not a time"),
        ("--rate-limit", "100", "`100` is not a rate; write 1 to 999999999, a slash, and s, m"),
        ("--rate-limit", "0/s", "`0/s` is not a rate"),
        ("--rate-limit", "1.5/s", "`1.5/s` is not a rate"),
        ("--rate-limit", "9999999999/d", "is not a rate"),
        ("--rate-limit", "\u0663/s", "is not a rate"),
        ("--byte-limit", "64MiB", "`64MiB` is not a rate of bytes; write a size and s, m, h or d"),
        ("--byte-limit", "0B/s", "is less than a byte"),
        ("--byte-limit", "64MiB/w", "is not a rate of bytes"),
        ("--concurrency-limit", "0", "`0` is not a count"),
        ("--log-limit", "many", "`many` is not a rate"),
        ("--log-format", "xml", "invalid choice"),
        ("--host-name", "https://a.example", "without scheme and port"),
        ("--host-name", "a.example:80", "without scheme and port"),
        ("--host-name", "", "is not a host name"),
    ],
)
def test_what_is_no_time_or_host_name_is_refused(capsys, option, given, said):
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["serve", f"{option}={given}"])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_model_that_is_not_there_is_named(capsys, tmp_path):
    assert main(["serve", str(tmp_path / "nowhere.onnx")]) == 2
    assert (
        f"No file or folder `{tmp_path / 'nowhere.onnx'}` exists; name an"
        in capsys.readouterr().err
    )
