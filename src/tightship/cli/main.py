"""`tightship COMMAND ...`: errors become one line on standard error and an exit code."""

import os
import sys
from collections.abc import Sequence

from tightship.cli.arguments import parser
from tightship.errors import CapacityError, OutOfMemoryError, TightshipError

FITS = 0
DOES_NOT_FIT = 1
BAD_INPUT = 2
UNDECIDED = 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 done or fits, 1 proved not to fit, 2 bad usage or file, 3 undecided within the budget.
    """
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except (CapacityError, OutOfMemoryError) as error:
        return _complain(error, DOES_NOT_FIT)
    except BrokenPipeError:
        return _close_quietly()
    except OSError as error:
        return _complain(f"`{error.filename}`: {error.strerror}.", BAD_INPUT)
    except TightshipError as error:
        return _complain(error, BAD_INPUT)
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _complain(what: Exception | str, code: int) -> int:
    print(f"tightship: {what}", file=sys.stderr)
    return code


def _close_quietly() -> int:
    """The reader has gone: what is left to flush at exit has nowhere to go either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FITS
