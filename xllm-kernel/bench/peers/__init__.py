"""Other libraries' operators beside ours: same inputs, one process, short blocks in random order.

Run it as ``python -m peers OPERATION`` or ``./dev peers OPERATION``; never imported by the package.
"""
