"""`python -m tprof`."""

import sys

from tprof.cli import main

sys.exit(main())
