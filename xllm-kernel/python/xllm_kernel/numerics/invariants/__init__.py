"""What the bits of a row must not, or do not, depend on: guarantees and certificates."""
