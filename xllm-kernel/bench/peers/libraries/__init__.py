"""The libraries that take part: a file each, found by listing this folder.

A file defines ``PEER``; importing it needs neither the library nor torch, loading does.
"""
