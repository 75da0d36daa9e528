"""An ASGI application of which every worker has the same copy of the weights.

    MODEL=model.onnx uvicorn --workers 4 examples.asgi:application

uvicorn starts its workers as new interpreters; each imports this module and maps the same file.
Runs release the interpreter's lock, so a thread for each keeps the loop free.
"""

import asyncio
import io
import os
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

import tightship

model = tightship.load(os.environ["MODEL"], share=True)

Message = dict[str, Any]


async def application(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Answer one request."""
    if scope["type"] != "http":
        return
    body = io.BytesIO()
    message: Message = {"more_body": True}
    while message.get("more_body"):
        message = await receive()
        body.write(message.get("body", b""))
    body.seek(0)
    status, answer = await asyncio.to_thread(_answer, body)
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": answer})


def _answer(body: io.BytesIO) -> tuple[int, bytes]:
    try:
        result = model(np.load(body, allow_pickle=False))
    except (ValueError, EOFError) as error:
        return 400, str(error).encode()
    answer = io.BytesIO()
    np.save(answer, result)
    return 200, answer.getvalue()
