"""An endpoint behind a server of HTTP in this process, and what raw bytes are answered there."""

import http.client
import json
import socket
import threading

from tests.driver.oip.endpoint_setting import Setting
from tightship.driver.oip.admission.gate import OPEN_ENTRY
from tightship.driver.oip.http.application import HttpApplication
from tightship.driver.oip.http.calls import HttpCalls
from tightship.driver.oip.http.places import Places
from tightship.driver.oip.http.serving import HttpServer, ReservingServer
from tightship.driver.oip.http.shared_state import Shared
from tightship.driver.oip.limits import EndpointLimits
from tightship.driver.oip.monitor import Monitor
from tightship.errors import StoppedError

LIMITS = EndpointLimits(drain_s=5.0)


class Endless:
    """A run that ends when it is released, or after so long that a test has failed."""

    def __init__(self):
        self.begun, self.was_stopped = threading.Event(), False

    def run(self, stop):
        self.begun.set()
        for _ in range(20_000):
            if stop.is_set():
                self.was_stopped = True
                raise StoppedError("It was stopped.")
            threading.Event().wait(0.001)


class Serving(Setting):
    """An endpoint behind a server in this process; `asked` are the calls that came to Python."""

    def __init__(self, folder, monkeypatch, limits=LIMITS, entry=OPEN_ENTRY):
        super().__init__(folder)
        self.asked = []
        respond = HttpCalls.respond

        def seen(calls, asked, caller=None):
            self.asked.append(asked)
            return respond(calls, asked, caller)

        monkeypatch.setattr(HttpCalls, "respond", seen)
        monitor = Monitor(self.endpoint, folder / "no.sock")
        self.server = HttpServer(self.endpoint, limits, ("127.0.0.1", 0), monitor, entry)
        self.server.start()

    def connected(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def request(self, **given):
        model = given.pop("model", "neg")
        body = self.body(**given)
        head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: localhost\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def close(self):
        self.server.begin_stop()
        self.server.join()
        super().close()


def reserving_server(calls, limits=LIMITS):
    """A server that listens nowhere, within a running loop, for connections of a test."""
    app = HttpApplication(calls, limits.body_bytes_max, None, None)
    places = Places(limits)
    return ReservingServer(OPEN_ENTRY, limits, None, Shared(app, limits, places))


def ask(connection, request):
    connection.sendall(request)
    return answer_on(connection)


def answer_on(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    body = response.read()
    return response.status, json.loads(body) if body else None
