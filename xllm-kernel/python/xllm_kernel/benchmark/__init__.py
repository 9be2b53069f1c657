"""Timing of validated implementations, on the cases of the numerical suites.

Run it as ``python -m xllm_kernel.benchmark``. Importing it needs no framework.
"""
