"""Implements `tightship sample`, which writes a sample network to a file."""

import argparse
from pathlib import Path

from tightship.atomic_file import write_bytes
from tightship.cli.output import show, show_json
from tightship.quantity import format_bytes
from tightship.view.table import Column, table


def run(options: argparse.Namespace) -> int:
    """List the sample networks, or write one."""
    from tightship.sample import SAMPLES, sample

    if options.network is None:
        if options.output is not None:
            options.refuse("-o names a file, but no network was named; list them without -o")
        if options.json:
            show_json(SAMPLES)
        else:
            columns = [Column("network"), Column("what it is")]
            show("\n".join(table(columns, list(SAMPLES.items()))) + "\n")
        return 0
    if options.output is None:
        options.refuse(f"name the file to write: tightship sample {options.network} -o FILE")
    content = sample(options.network, options.seed)
    path = Path(options.output)
    write_bytes(path, content)
    if options.json:
        show_json({"network": options.network, "file": str(path), "size_bytes": len(content)})
    else:
        show(f"wrote {path}, {format_bytes(len(content))}\n")
    return 0
