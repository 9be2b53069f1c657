"""``python -m xllm_kernel``: questions about the installed package."""

from __future__ import annotations

import sys

from xllm_kernel.explain import main

if __name__ == "__main__":
    sys.exit(main())
