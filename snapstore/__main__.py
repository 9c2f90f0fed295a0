"""`python -m snapstore`."""

from __future__ import annotations

import sys

from snapstore.cli import main

sys.exit(main())
