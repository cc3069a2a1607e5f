"""`python -m dpplearn` is the program `dpplearn`."""

import sys

from dpplearn.cli import main

sys.exit(main())
