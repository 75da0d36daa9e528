"""`tightship serve` as a process, and plain HTTP calls to it."""

import http.client
import json
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager

COMMAND = (sys.executable, "-m", "tightship.cli", "serve")


class Serve:
    """A running server: its process, and where it listens."""

    def __init__(self, process):
        self.process = process
        places = process.stdout.readline().partition(" at ")[2].split(",")
        self.socket, *others = (each.strip() for each in places)
        named = dict(each.split("://") for each in others)
        self.http, self.grpc = named.get("http"), named.get("grpc")

    def ask(self, method, target, body=None, **headers):
        """The status, headers and body of a response, by a connection of its own."""
        with closing(http.client.HTTPConnection(self.http, timeout=60)) as connection:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def get(self, target):
        """The status, and the body as JSON."""
        status, _, body = self.ask("GET", target)
        return status, json.loads(body)

    def post(self, target, said):
        """The status, and the body as JSON, None where it is empty."""
        status, _, body = self.ask("POST", target, json.dumps(said))
        return status, json.loads(body) if body else None


@contextmanager
def serve(*options):
    """A server over HTTP and gRPC, given models and other options, that ends with the block."""
    with tempfile.TemporaryDirectory() as own:
        faces = ("--socket", f"{own}/driver.sock", "--http", "0", "--grpc", "0")
        command = [*COMMAND, *faces, *map(str, options)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield Serve(process)
            finally:
                process.kill()
