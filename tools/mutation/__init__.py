"""The validator under attack: faults planted in the package's modules, and the tests that see them.

Run by ``./dev mutation``, which says how; Cosmic Ray makes the faults. No part of the package.
"""
