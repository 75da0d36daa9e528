"""A WSGI application of which every worker has the same copy of the weights.

    MODEL=model.onnx gunicorn --workers 4 examples.wsgi:application

gunicorn forks its workers and each imports this module, so each loads the model: the first
prepares it once, all map the same file. A request's body is an array as `np.save` writes it, and
so is the answer's.
"""

import io
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tightship

model = tightship.load(os.environ["MODEL"], share=True)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer one request."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    try:
        result = model(np.load(io.BytesIO(body), allow_pickle=False))
    except (ValueError, EOFError) as error:  # no array; or InputError, not one for this model
        start_response("400 Bad Request", [("Content-Type", "text/plain")])
        return [str(error).encode()]
    answer = io.BytesIO()
    np.save(answer, result)
    start_response("200 OK", [("Content-Type", "application/octet-stream")])
    return [answer.getvalue()]
