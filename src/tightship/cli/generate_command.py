"""Implements `tightship generate`: goes on with a text."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tightship.cli.argument_types import max_memory
from tightship.cli.opened_session import check_template, opened
from tightship.cli.output import show, show_json

if TYPE_CHECKING:
    from tightship.text.generation import Generation


def run(options: argparse.Namespace) -> int:
    """Print the prompt and the answer as it comes, or a report in JSON at the end."""
    text = sys.stdin.read() if options.prompt == "-" else options.prompt
    schema = None if options.json_schema is None else Path(options.json_schema).read_text("utf-8")
    with opened(options, max_memory(options)) as found:
        if options.chat:
            check_template(found, options.model)
        prompt = [{"role": "user", "content": text}] if options.chat else text
        began = time.perf_counter()
        answer = found.session.generate(prompt, **found.answer, schema=schema)
        if options.json:
            show_json(_report(answer, began, options.model))
            return 0
        if not options.chat:
            show(text)
        for piece in answer:
            show(piece)
            sys.stdout.flush()
        show("\n")
    return 0


def _report(answer: "Generation", began: float, model: str) -> dict[str, object]:
    """Return the whole answer with its counts and times."""
    first, parts = None, []
    for piece in answer:
        first = first or time.perf_counter()
        parts.append(piece)
    ended, count = time.perf_counter(), len(answer.tokens)
    steps = count - 1
    return {
        "model": model,
        "text": "".join(parts),
        "finish_reason": answer.finish_reason,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": count,
        "seed": answer.seed,
        "first_piece_ns": int(((first or ended) - began) * 1e9),
        "tokens_per_second": steps / (ended - first) if first and steps > 0 else None,
    }
