"""Defines the arguments of the command line."""

import argparse
from collections.abc import Callable, Mapping

from tightship import __version__
from tightship.cli.argument_types import (
    MAX_MEMORY,
    PrecisionAction,
    count,
    pass_name,
    seconds,
    shape,
    size,
    size_or_none,
)
from tightship.cli.budget_options import add_budget
from tightship.cli.buffer_options import BUFFERS, add_place, add_verify
from tightship.cli.cluster_options import add_cluster
from tightship.cli.context_arguments import add_context
from tightship.cli.embed_options import add_embed
from tightship.cli.exec_options import add_exec
from tightship.cli.exit_codes import EXIT_CODES
from tightship.cli.plan_options import add_plan_options
from tightship.cli.squeeze_option import add_squeeze
from tightship.cli.text_options import add_chat, add_generate
from tightship.cli.view_options import add_cost_output, add_view_options

MODEL = "an ONNX model, a program of torch (.pt2), or a prepared one (.tship)"

TRACE = (
    "a trace (.json, .jsonl), a log of the RAPIDS Memory Manager (.csv) or a memory snapshot of "
    "PyTorch (.pickle, .pkl)"
)


def parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """Make the parser of all commands; `options.command` holds the name of the chosen one.

    Args:
        chosen: Command that is added alone, which takes less time; None adds all.
    """
    top = argparse.ArgumentParser(
        prog="tightship",
        description="Know a model's peak memory before you run it, run it in exactly that, and "
        "share one copy of its weights between processes.",
        epilog="Without a MODEL, `plan`, `run`, `view`, `cost` and `share` take the ResNet-50 of "
        "the onnx package. Exit codes: 0 fits or done, 1 proved not to fit, 2 bad usage or file, "
        "3 undecided within the budget.",
    )
    top.add_argument("--version", action="version", version=f"tightship {__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (what, add) in COMMANDS.items():
        if chosen in (None, name):
            add(_command(commands, name, what))
    return top


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, what: str
) -> argparse.ArgumentParser:
    if name not in EXIT_CODES:  # a group of commands, which describes itself
        return commands.add_parser(name, help=what)
    codes = sorted([*EXIT_CODES[name].split(", "), "2 bad usage or file"])
    command = commands.add_parser(
        name,
        help=what,
        description=what[0].upper() + what[1:] + ".",
        epilog=f"Exit codes: {', '.join(codes)}.",
    )
    command.set_defaults(command=name, refuse=command.error)
    return command


def _plan(command: argparse.ArgumentParser) -> None:
    _model_argument(command, "MODEL", MODEL)
    _model_options(command)
    _limit_options(command)
    add_plan_options(command)


def _run(command: argparse.ArgumentParser) -> None:
    _model_argument(command, "MODEL", MODEL)
    _model_options(command)
    _limit_options(command)
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="an input; may be repeated; other inputs are filled from a seed",
    )
    command.add_argument(
        "--share",
        action="store_true",
        help="prepare the model once for this user, and map the prepared file",
    )
    command.add_argument(
        "--repeat",
        type=count,
        default=10,
        metavar="N",
        help="number of timed runs, of which the median is shown (default 10)",
    )
    command.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="end a run between two steps after this many seconds",
    )
    command.add_argument(
        "-o", "--output", metavar="FOLDER", help="write every output as FOLDER/NAME.npy"
    )
    _profile_options(command)
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _profile_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--profile",
        action="store_true",
        help="run again with every step timed, and list the slowest",
    )
    command.add_argument(
        "--by-operator",
        action="store_true",
        help="profile, and sum steps of the same operator and implementation",
    )
    command.add_argument(
        "--top", type=count, default=20, metavar="N", help="rows of a profile (default 20)"
    )
    command.add_argument(
        "--trace",
        metavar="OUT.json",
        help="profile, and write a trace for Perfetto or chrome://tracing",
    )


def _cost(command: argparse.ArgumentParser) -> None:
    _model_argument(command, "MODEL", "an ONNX model")
    _shape_option(command)
    command.add_argument(
        "--batch",
        type=count,
        metavar="N",
        help="length of the inputs' first dimension; one that the file fixes is changed if every "
        "node keeps samples apart",
    )
    command.add_argument(
        "--forward-only", action="store_true", help="leave out the rows of training"
    )
    command.add_argument(
        "--donate-inputs",
        action="store_true",
        help="let steps write over inputs after their last use",
    )
    command.add_argument(
        "--parallel",
        action="store_true",
        help="show plans for steps that run at once, and the waits that a serial plan adds",
    )
    add_squeeze(command)
    command.add_argument(
        "--max-memory",
        type=size,
        metavar="1GiB",
        help="show the largest batch whose arena, inputs and weights fit",
    )
    add_cost_output(command)


def _prepare(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="MODEL", help="an ONNX model")
    _model_options(command, "; may be repeated, to prepare for several shapes")
    add_context(
        command, "write programs for sessions of a decoder with caches of so many tokens too"
    )
    command.add_argument(
        "-o", "--output", required=True, metavar="OUT.tship", help="the prepared model to write"
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _sample(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "network", nargs="?", metavar="NETWORK", help="the network; without it, all are listed"
    )
    command.add_argument("-o", "--output", metavar="OUT.onnx", help="the file to write")
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the weights (default 0)"
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _share(command: argparse.ArgumentParser) -> None:
    _model_argument(command, "MODEL", "an ONNX model, or a prepared one (.tship)")
    _shape_option(command)
    command.add_argument(
        "--procs", type=count, default=4, metavar="N", help="processes (default 4)"
    )
    command.add_argument(
        "--threads", type=count, default=1, metavar="N", help="threads of each kernel (default 1)"
    )
    command.add_argument(
        "--start",
        choices=("spawn", "fork", "forkserver"),
        default="spawn",
        help="how the processes start (default spawn: a new interpreter each)",
    )
    command.add_argument(
        "--peers",
        action=argparse.BooleanOptionalAction,
        help="measure ONNX Runtime as well (default: with spawn, if it is installed)",
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _cache(command: argparse.ArgumentParser) -> None:
    command.description = "Work with prepared models."
    commands = command.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, what in (
        ("list", "list the prepared models"),
        ("clear", "remove all prepared models; those in use stay mapped where they are"),
    ):
        about = _command(commands, name, what)
        about.set_defaults(command="cache", action=name)
        about.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _resource(command: argparse.ArgumentParser) -> None:
    command.description = "Work with memory resources."
    commands = command.add_subparsers(title="commands", required=True, metavar="COMMAND")
    profile = _command(commands, "profile", "recommend a division for a recorded trace")
    profile.add_argument("file", metavar="TRACE", help=TRACE)
    profile.add_argument(
        "--size",
        type=size,
        metavar="1GiB",
        help="size of the region (default: the least that holds the trace, plus a quarter)",
    )
    profile.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _replay(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="TRACE", help=TRACE)
    command.add_argument(
        "--resource",
        action="append",
        metavar="SPEC",
        help="names from the outermost to the root, each with an optional size, as in "
        "`limit:1GiB/pool:2MiB`; may be repeated, to compare",
    )
    command.add_argument(
        "-o", "--output", metavar="OUT", help="draw what was live and held: .html or .svg"
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _view(command: argparse.ArgumentParser) -> None:
    _model_argument(command, "MODEL|BUFFERS", f"{MODEL}, or buffers: {BUFFERS}")
    _model_options(command)
    add_view_options(command)


def _model_argument(command: argparse.ArgumentParser, metavar: str, what: str) -> None:
    what = f"{what}; the ResNet-50 of the onnx package if left out"
    command.add_argument("file", metavar=metavar, nargs="?", help=what)


def _shape_option(command: argparse.ArgumentParser, more: str = "") -> None:
    command.add_argument(
        "--shape",
        type=shape,
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help=f"shape of an input, or length of a dimension by its name, SEQ=128{more}",
    )


def _model_options(command: argparse.ArgumentParser, more: str = "") -> None:
    _shape_option(command, more)
    command.add_argument(
        "--threads",
        type=count,
        metavar="N",
        help="threads of each kernel (default 1, or those a prepared model is for)",
    )
    command.add_argument(
        "--workers",
        type=count,
        metavar="N",
        help="plan for N steps at once, each on one thread (default 1, or as for threads)",
    )
    command.add_argument(
        "--workers-memory",
        type=size_or_none,
        metavar="1MiB",
        help="most that the arena may take beyond that for one worker (default: as much as the "
        "fastest plan needs)",
    )
    command.add_argument(
        "--without",
        type=pass_name,
        action="append",
        default=[],
        metavar="PASS",
        help="leave out a pass, for comparison; an unknown name lists all passes",
    )
    command.add_argument(
        "--precision",
        action=PrecisionAction,
        choices=("float32", "bfloat16"),
        help="type that products by weights multiply in; bfloat16 halves the weights and rounds, "
        "which is faster and less exact, where the processor has AVX-512 BF16 (default float32)",
    )


def _limit_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--max-memory",
        type=size,
        metavar="64MiB",
        help=f"refuse a model that would take more (default: {MAX_MEMORY})",
    )
    command.add_argument(
        "--dynamic-memory",
        type=size,
        metavar="64MiB",
        help="limit of the bytes that steps outside the plan allocate",
    )
    command.add_argument(
        "--tune",
        nargs="?",
        const="",
        metavar="FILE",
        help="choose layouts by measurement, and keep the choice in FILE for later runs (default "
        "tightship/tuned.json below XDG_CACHE_HOME); give this option after the MODEL",
    )


def _serve(command: argparse.ArgumentParser) -> None:
    from tightship.cli.driver_options import add_serve  # few commands are of a driver

    add_serve(command, MODEL)


def _pools(command: argparse.ArgumentParser) -> None:
    from tightship.cli.driver_options import add_pools

    add_pools(command)


COMMANDS: Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "plan": ("show the memory of a model, without loading it", _plan),
    "run": ("load a model, run it, and compare its memory with the plan", _run),
    "view": ("draw a plan, as an interactive page or a still picture", _view),
    "sample": ("write a sample network to a file", _sample),
    "budget": ("hold the models of a project to budgets of memory", add_budget),
    "exec": ("run any program under a hard limit, and say what it held", add_exec),
    "cost": ("show what each planning technique saves on a graph", _cost),
    "prepare": ("write a model to a file that processes map and share", _prepare),
    "share": ("measure the memory of several processes with one model", _share),
    "cache": ("list or remove prepared models", _cache),
    "serve": ("run models for other processes, through shared memory", _serve),
    "generate": ("go on with a text, by a language model", add_generate),
    "chat": ("talk with a language model in the terminal", add_chat),
    "embed": ("turn texts into vectors, or score them for a question", add_embed),
    "pools": ("show the memory of a driver by owner", _pools),
    "place": ("give the buffers of a file their offsets in an arena", add_place),
    "verify": ("check a plan of buffers, whichever tool made it", add_verify),
    "cluster": ("show models on a cluster of Ray", add_cluster),
    "replay": ("replay a recorded trace on memory resources", _replay),
    "resource": ("divide memory for a workload", _resource),
}
"""Help of each command, and the function that adds its options."""
