"""`python -m tightship.cli`."""

import sys

from tightship.cli.main import main

sys.exit(main())
