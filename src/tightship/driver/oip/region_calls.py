"""The calls about shared memory: of the system, and of CUDA as a build without it answers."""

from typing import Any

from tightship.driver.oip.json_fields import Object, field, optional
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.rules.regions import Code, Region


def answer_region_call(
    files: RegionFiles, method: str, segments: list[str], body: Object
) -> list[dict[str, Any]] | None:
    """What a call is answered; None is an empty body.

    Args:
        files: The regions.
        method: GET or POST.
        segments: Of the path after the version: the kind of memory, maybe `region` and a name,
            and what to do.
        body: Of a registration.

    Raises:
        OipError, RegionError: There is no such call, or it is refused.
    """
    kind = segments[0]
    match (method, *segments[1:]):
        case ("GET", "status"):
            name = None
        case ("GET", "region", name, "status"):
            pass
        case ("POST", "unregister"):
            _unregister(files, kind, None)
            return None
        case ("POST", "region", name, "unregister"):
            _unregister(files, kind, name)
            return None
        case ("POST", "region", name, "register"):
            _register(files, kind, name, body)
            return None
        case _:
            raise OipError("there is no such call about shared memory", Code.NOT_FOUND)
    return _status(files, kind, name)


def _status(files: RegionFiles, kind: str, name: str | None) -> list[dict[str, Any]]:
    if kind == "cudasharedmemory":
        if name is None:
            return []
        raise OipError(f"Unable to find cuda shared memory region: '{name}'", Code.NOT_FOUND)
    return [
        {
            "name": region.name,
            "key": region.key,
            "offset": region.offset_bytes,
            "byte_size": region.size_bytes,
        }
        for region in files.status(name)
    ]


def _register(files: RegionFiles, kind: str, name: str, body: Object) -> None:
    files.check_enabled()
    if kind == "cudasharedmemory":
        raise OipError(
            f"failed to register CUDA shared memory region: '{name}', GPUs not supported"
        )
    offset_bytes = optional(body, "offset", int) or 0
    files.register(
        Region(name, field(body, "key", str), offset_bytes, field(body, "byte_size", int))
    )


def _unregister(files: RegionFiles, kind: str, name: str | None) -> None:
    files.check_enabled()
    if kind == "systemsharedmemory":
        files.unregister(name)
