"""Other libraries' operators beside ours, timed by the benchmark's own machinery.

Run it as ``python -m peers OPERATION`` or ``./dev bench OPERATION``; never imported by the package.
"""
