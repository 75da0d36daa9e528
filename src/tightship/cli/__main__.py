"""Runs the command line as `python -m tightship.cli`."""

import sys

from tightship_start import command_line

sys.exit(command_line())
