"""A server behind a real nginx, configured as the example is."""

import http.client
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("uvicorn")
http_client = pytest.importorskip("tritonclient.http")
grpc_client = pytest.importorskip("tritonclient.grpc")
from tests.driver.oip.admission.pem import certificate  # noqa: E402
from tests.driver.oip.serve_process import LENGTH, serve_neg  # noqa: E402

EXAMPLE = Path(__file__).parents[3] / "examples" / "nginx.conf"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "behind-nginx.md"
MAIN = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {example}
}}
"""

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs the program nginx")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def configured(folder, serve, port, chain, key):
    """The example with the addresses and files of a test; each replacement must fit."""
    text = EXAMPLE.read_text()
    for old, new in (
        ("127.0.0.1:8000", serve.http),
        ("127.0.0.1:8001", serve.grpc),
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/nginx/tls.crt", str(chain)),
        ("/etc/nginx/tls.key", str(key)),
    ):
        assert text.count(f"{old};") + text.count(f"{old} ") == 1, old
        text = text.replace(f"{old};", f"{new};").replace(f"{old} ", f"{new} ")
    path = folder / "nginx.conf"
    path.write_text(MAIN.format(folder=folder, example=text))
    return path


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(folder, serve, chain, key):
    """Nginx in front of a server; the port that it listens on."""
    port = free_port()
    command = [NGINX, "-p", folder, "-c", configured(folder, serve, port, chain, key)]
    command += ["-e", f"{folder}/error.log"]
    with subprocess.Popen(list(map(str, command))) as process:
        try:
            until = time.monotonic() + 20
            while not listens(port) and time.monotonic() < until:
                assert process.poll() is None, (folder / "error.log").read_text()
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """A server that trusts the proxy, the proxy's port, and its certificate."""
    folder = tmp_path_factory.mktemp("nginx")
    folder.chmod(0o755)
    chain, key = certificate(folder, "models", host="models.example.com")
    options = ("--host-name", "models.example.com", "--trusted-proxy", "127.0.0.1")
    with (
        serve_neg(folder, *options, "--log", "info", "--max-body", "1MiB") as serve,
        running(folder, serve, chain, key) as port,
    ):
        yield serve, port, chain


@pytest.mark.parametrize("module", [http_client, grpc_client], ids=["http", "grpc"])
def test_unmodified_clients_call_through_the_proxy(proxied, module):
    _, port, chain = proxied
    if module is http_client:
        trust = {"ssl_context_factory": lambda: ssl.create_default_context(cafile=chain)}
    else:
        trust = {"root_certificates": str(chain)}
    with module.InferenceServerClient(f"127.0.0.1:{port}", ssl=True, **trust) as client:
        given = module.InferInput("x", [LENGTH], "FP32")
        x = np.arange(LENGTH, dtype=np.float32)
        given.set_data_from_numpy(x)
        for _ in range(3):
            assert np.array_equal(client.infer("neg", [given]).as_numpy("y"), -x)
        assert client.is_server_ready()


def test_the_log_names_the_client_and_not_the_proxy_or_what_a_client_invents(proxied):
    serve, port, chain = proxied
    context = ssl.create_default_context(cafile=chain)
    with closing(
        http.client.HTTPSConnection(
            "127.0.0.1", port, context=context, timeout=20, source_address=("127.0.0.9", 0)
        )
    ) as connection:
        invented = {"X-Forwarded-For": "192.0.2.66", "Host": "models.example.com"}
        connection.request("GET", "/v2/none", headers=invented)
        assert connection.getresponse().status == 404
    assert "http:127.0.0.9:0: GET /v2/none is refused" in serve.log
    assert "192.0.2.66" not in serve.log


def test_the_page_shows_the_example():
    assert EXAMPLE.read_text() in PAGE.read_text()
