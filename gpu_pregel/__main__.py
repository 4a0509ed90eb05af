"""``python -m gpu_pregel`` is the command line."""

import sys

from gpu_pregel.cli import main

if __name__ == "__main__":
    sys.exit(main())
