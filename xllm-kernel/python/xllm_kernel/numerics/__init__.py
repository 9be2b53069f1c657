"""Offline numerical validation: suites of cases, independent references, verdicts, reports.

Run it as ``python -m xllm_kernel.numerics``. Importing it needs no framework.
"""
