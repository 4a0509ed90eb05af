"""The command line as ``python -m gpu_pregel``."""

import sys

from gpu_pregel.cli import main

if __name__ == "__main__":
    sys.exit(main())
