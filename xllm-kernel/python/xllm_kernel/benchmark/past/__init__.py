"""Past runs: read reports, compare two, keep them in a folder, show an operator over revisions.

Takes no samples and needs no framework.
"""
