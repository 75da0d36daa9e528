"""HTTP calls of the protocol except inference, by path and method."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any

from tightship.driver.oip.endpoint import (
    LOG_SETTINGS,
    TRACE_SETTINGS,
    InferenceEndpoint,
    Said,
    check_unchanged,
)
from tightship.driver.oip.http.message import HttpRequest, HttpResponse, json_response
from tightship.driver.oip.http.paths import VERSIONED, Call, Methods, Values
from tightship.driver.oip.json_fields import field, optional, parse
from tightship.driver.oip.monitor import Monitor
from tightship.driver.oip.region_calls import Memory, register_cuda, status, unregister
from tightship.driver.oip.regions import Region


@cache
def page() -> bytes:
    """Return the page; it reads `/status` every second, and its policy forbids other requests."""
    style, script = (
        _asset("live.css"),
        f"'use strict';\n{{\n{_asset('histories.js')}{_asset('live.js')}}}\n",
    )
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src data:; script-src '{_hash(script)}'; "
        f"style-src '{_hash(style)}'"
    )
    html = Template(_asset("live.html"))
    return html.substitute(policy=policy, style=style, script=script).encode()


def _asset(name: str) -> str:
    return files("tightship.driver.oip").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


Table = Mapping[str, Methods]


def server_calls(endpoint: InferenceEndpoint, monitor: Monitor | None) -> Table:
    """Return the calls about the server, with those of its page if there is a monitor."""
    return {
        **({} if monitor is None else _page_calls(monitor)),
        "/metrics": {"GET": lambda *_: _metrics(endpoint, monitor)},
        "/v2": {"GET": lambda *_: json_response(endpoint.metadata())},
        "/v2/health/live": {"GET": lambda *_: json_response({"live": True})},
        "/v2/health/ready": {"GET": lambda *_: _health({"ready": endpoint.is_ready})},
    }


def _page_calls(monitor: Monitor) -> Table:
    html = "text/html; charset=utf-8"
    return {
        "/": {"GET": lambda *_: HttpResponse(parts=(page(),), content_type=html)},
        "/status": {"GET": lambda asked, _: json_response(monitor.status(_since(asked.target)))},
    }


def _since(target: str) -> float:
    """Return the time of `/status?since=MS`, after which samples are wanted; 0 for all."""
    said = target.rpartition("?since=")[2]
    return float(said) if said.isascii() and said.isdigit() and len(said) < 16 else 0.0


def _metrics(endpoint: InferenceEndpoint, monitor: Monitor | None) -> HttpResponse:
    text = endpoint.metrics() + ("" if monitor is None else monitor.metrics())
    return HttpResponse(parts=(text.encode(),), content_type="text/plain; version=0.0.4")


def _health(said: Said) -> HttpResponse:
    """Return a response with Triton's status: 400 unless the server or the model is ready."""
    return replace(json_response(said), status=200 if said["ready"] else 400)


def model_calls(endpoint: InferenceEndpoint) -> Table:
    """Return the calls that query models."""

    def ready(name: str, version: str | None) -> HttpResponse:
        return _health({"name": name, "ready": endpoint.is_model_ready(name, version)})

    return {
        "/v2/models/stats": {"GET": lambda *_: json_response(endpoint.statistics())},
        VERSIONED: {"GET": lambda _, v: json_response(endpoint.model_metadata(*named(v)))},
        f"{VERSIONED}/ready": {"GET": lambda _, v: ready(*named(v))},
        f"{VERSIONED}/config": {
            "GET": lambda _, v: json_response(endpoint.model_config(*named(v)))
        },
        f"{VERSIONED}/stats": {"GET": lambda _, v: json_response(endpoint.statistics(*named(v)))},
        f"{VERSIONED}/trace/setting": {"GET": lambda *_: json_response(TRACE_SETTINGS)},
    }


def named(values: Values) -> tuple[str, str | None]:
    """Return name and version of the model in a path."""
    return values["name"], values.get("version")


def index_call(endpoint: InferenceEndpoint, body_bytes_max: int) -> Table:
    """Return the call that lists models."""

    def index(request: HttpRequest, _: Values) -> HttpResponse:
        body = parse(request.content(body_bytes_max))
        only_ready = optional(body, "ready", bool) or False
        return json_response(endpoint.repository.index(only_ready=only_ready))

    return {"/v2/repository/index": {"POST": index}}


def repository_calls(endpoint: InferenceEndpoint, body_bytes_max: int) -> Table:
    """Return the calls that list, load and unload models."""

    def load(request: HttpRequest, values: Values) -> HttpResponse:
        body = parse(request.content(body_bytes_max))
        endpoint.load(values["name"], optional(body, "parameters", dict) or {})
        return HttpResponse()

    def unload(request: HttpRequest, values: Values) -> HttpResponse:
        body = parse(request.content(body_bytes_max))
        endpoint.unload(values["name"], optional(body, "parameters", dict) or {})
        return HttpResponse()

    return {
        **index_call(endpoint, body_bytes_max),
        "/v2/repository/models/{name}/load": {"POST": load},
        "/v2/repository/models/{name}/unload": {"POST": unload},
    }


def region_calls(endpoint: InferenceEndpoint, memory: Memory, body_bytes_max: int) -> Table:
    """Return the calls about named regions of a kind of memory."""
    regions = endpoint.regions
    prefix = f"/v2/{memory.name.lower()}sharedmemory"

    def register(request: HttpRequest, values: Values) -> HttpResponse:
        name = values["name"]
        regions.check_enabled()
        if memory is Memory.CUDA:
            register_cuda(regions, name)
        body = parse(request.content(body_bytes_max))
        key, size_bytes = field(body, "key", str), field(body, "byte_size", int)
        regions.register(Region(name, key, optional(body, "offset", int) or 0, size_bytes))
        return HttpResponse()

    def remove(_: HttpRequest, values: Values) -> HttpResponse:
        unregister(regions, memory, values.get("name"))
        return HttpResponse()

    def told(_: HttpRequest, values: Values) -> HttpResponse:
        return json_response(status(regions, memory, values.get("name")))

    return {
        f"{prefix}[/region/{{name}}]/status": {"GET": told},
        f"{prefix}[/region/{{name}}]/unregister": {"POST": remove},
        f"{prefix}/region/{{name}}/register": {"POST": register},
    }


def settings_calls(body_bytes_max: int) -> Table:
    """Return the calls about settings of tracing and logging, which are read-only."""

    def change(kind: str, said: Mapping[str, Any]) -> Call:
        def answer(request: HttpRequest, _: Values) -> HttpResponse:
            check_unchanged(parse(request.content(body_bytes_max)), kind)
            return json_response(said)

        return answer

    return {
        path: {"GET": lambda *_, said=said: json_response(said), "POST": change(kind, said)}
        for path, kind, said in (
            ("/v2/trace/setting", "trace", TRACE_SETTINGS),
            ("/v2/logging", "logging", LOG_SETTINGS),
        )
    }
