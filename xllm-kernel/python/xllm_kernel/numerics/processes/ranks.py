"""Ranks of a launcher on one machine, and how they reach rank 0.

A socket in the kernel's abstract names rather than a store of the framework: the processes that own
a report load no framework; a rank's end, by whatever, closes its socket at once; and nothing stays
behind in a file system. It reaches no other machine, so ranks share one.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.processes.wire import Event, Lines, encode

PATIENCE_S = 120.0
"""How long ranks wait for one another's start."""

_OF_A_START = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
)
_PIECE = 1 << 16
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """A process's place among the ranks of a run.

    Attributes:
        rank: its number; 0 owns the report.
        count: how many there are, at least two.
        local_rank: its number on its machine, which chooses its device.
        name: of the socket, the same for all ranks of one start of one run.
    """

    rank: int
    count: int
    local_rank: int
    name: bytes


def place() -> Place | None:
    """Read a launcher's variables; None where the process is the only one.

    Raises:
        ConfigurationError: for variables that make no sense, and for ranks on several machines.
    """
    if "RANK" not in os.environ or os.environ.get("WORLD_SIZE", "1") == "1":
        return None
    rank, count = _number("RANK"), _number("WORLD_SIZE")
    here = _number("LOCAL_WORLD_SIZE", count)
    if not rank < count:
        raise ConfigurationError(f"RANK must be less than WORLD_SIZE ({count}), got {rank}")
    if here != count:
        raise ConfigurationError(
            f"ranks must share one machine, but LOCAL_WORLD_SIZE is {here} of WORLD_SIZE {count}; "
            "launch one run a machine"
        )
    words = [
        os.environ.get(name, "")
        for name in (
            "MASTER_ADDR",
            "MASTER_PORT",
            "TORCHELASTIC_RUN_ID",
            "TORCHELASTIC_RESTART_COUNT",
        )
    ]
    digest = hashlib.sha256("\n".join([str(os.getuid()), *words]).encode()).hexdigest()
    name = b"\0xllm-kernel-" + digest[:32].encode()
    return Place(rank, count, _number("LOCAL_RANK", rank), name)


class Link:
    """One end of a connection between two ranks."""

    def __init__(self, connection: socket.socket) -> None:
        """Take the connection.

        Raises:
            PermissionError: when another user's process is at its other end.
        """
        self._connection, self._lines = connection, Lines()
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, user, _ = struct.unpack("3i", credentials)
        if user != os.getuid():
            raise PermissionError(f"a process of user {user} called; ranks must be of one user")

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._connection.fileno()

    def send(self, event: Event) -> None:
        """Tell the other end.

        Raises:
            OSError: when it is gone.
        """
        self._connection.sendall(encode(event))

    def receive(self) -> Iterator[Event] | None:
        """Return the events that came, waiting for some bytes; None when the other end is gone."""
        try:
            data = self._connection.recv(_PIECE)
        except ConnectionError:
            return None
        return self._lines.feed(data) if data else None

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def listen(place: Place) -> socket.socket:
    """Open rank 0's socket.

    Raises:
        ConfigurationError: when another run has it.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(place.name)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            "rank 0: no other run may have this MASTER_ADDR and MASTER_PORT; launch with another "
            f"port ({error})"
        ) from error
    listener.listen(place.count)
    return listener


def call(place: Place, patience_s: float = PATIENCE_S) -> Link:
    """Reach rank 0 from another rank, once it listens.

    Raises:
        TimeoutError: when it does not for too long.
    """
    end = time.monotonic() + patience_s
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(place.name)
        except (ConnectionError, FileNotFoundError):
            connection.close()
            if time.monotonic() >= end:
                raise TimeoutError(f"rank 0 was not there after {patience_s:g} s") from None
            time.sleep(_PAUSE_S)
        else:
            return Link(connection)


def _number(name: str, default: int | None = None) -> int:
    text = os.environ.get(name, "" if default is None else str(default))
    if not text.isdecimal():
        raise ConfigurationError(f"{name} must be a number, as a launcher sets it, got {text!r}")
    return int(text)
