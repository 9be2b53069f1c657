"""Whether a peer is installed here, and which version."""

from __future__ import annotations

import importlib.metadata

from peers.operation import PeerError


def version(distribution: str) -> str:
    """Return a distribution's version.

    Raises:
        PeerError: where it is not installed.
    """
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError as error:
        raise PeerError(f"not installed: {distribution}; pip says why it failed") from error
