"""`python -m tightship.cli`."""

import sys

from tightship.cli.main import command_line

sys.exit(command_line())
