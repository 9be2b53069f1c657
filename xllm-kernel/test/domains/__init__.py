"""Argument sets on both sides of every domain's boundaries, and all who must agree about them.

Everything is read off the domains and the registry; only ``cpp_api`` names operations, for it has
the statuses of each.
"""
