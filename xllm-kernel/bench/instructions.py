"""Compare the instructions that fixed calls take with the record, or record them anew.

Instructions are counted by callgrind, hence independent of the machine's load; not of the
compiler, which the record names. Knows no operator: programs print the names of their calls.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LEVELS = ("scalar", "avx2")  # Valgrind knows no AVX-512
TOLERANCE = 0.02  # of the recorded count
REGION = "xllm_kernel_counted_region"  # in bench/support/counted_region.h
SKIPPED = 77  # CTest's SKIP_RETURN_CODE for this test


class CountError(Exception):
    """The counting itself went wrong."""


@dataclass(frozen=True, slots=True)
class Record:
    """Counts, and what they hold for: another compiler or build counts otherwise."""

    compiler: str
    build: str
    library: str
    counts: dict[str, int]

    @staticmethod
    def read(path: Path) -> Record:
        """Return the record in a file."""
        return Record(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """Replace a file by this record, in a form that differs in few lines."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        path.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def not_comparable(record: Record, found: Record) -> str:
    """Return why counts of two builds say nothing about each other; empty if they do."""
    for name in ("compiler", "build"):
        recorded, here = getattr(record, name), getattr(found, name)
        if recorded != here:
            return f"not comparable: the record is of {name} '{recorded}', this is '{here}'"
    return ""


def differences(record: Record, found: Record) -> list[str]:
    """Return a sentence for each call that is not as recorded."""
    lines = []
    for name in sorted(record.counts.keys() | found.counts.keys()):
        before, after = record.counts.get(name), found.counts.get(name)
        if before is None or after is None:
            lines.append(f"{name}: {'not recorded' if before is None else 'no longer counted'}")
            continue
        if abs(after - before) > TOLERANCE * before:
            change = f"{100 * (after / before - 1):+.1f} %"
            lines.append(f"{name}: {after} instructions, recorded {before} ({change})")
    return lines


def dumped_counts(folder: Path) -> list[int]:
    """Return the instructions of each dump that callgrind made as the region was left."""
    counts = []
    for index in range(1, len(list(folder.glob("out.*"))) + 1):
        text = (folder / f"out.{index}").read_text(encoding="utf-8")
        found = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if f"--dump-after={REGION}" in text and found:
            counts.append(int(found[1]))
    return counts


def count(program: Path, level: str) -> dict[str, int]:
    """Run a program under callgrind and return the instructions of each call that it names."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            "--collect-atstart=no",
            f"--toggle-collect={REGION}",
            f"--dump-after={REGION}",
            f"--callgrind-out-file={folder}/out",
            str(program),
        ]
        environment = os.environ | {"XLLM_KERNEL_SIMD_LEVEL": level}
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        if run.returncode:
            raise CountError(f"{program.name} failed under valgrind:\n{run.stdout}{run.stderr}")
        names, counts = run.stdout.split(), dumped_counts(Path(folder))
    if not names or len(names) != len(counts) or 0 in counts:
        raise CountError(
            f"{program.name} must print a name for each counted call: got {len(names)} names"
            f" and the counts {counts}"
        )
    return dict(zip(names, counts, strict=True))


def check(path: Path, found: Record, update: str) -> int:
    """Compare with the record and say what is to be done; return the exit status."""
    record = Record.read(path)
    lines = differences(record, found)
    if not lines:
        print(f"{len(found.counts)} calls within {100 * TOLERANCE:g} % of the record")
        return 0
    print(
        f"instructions.py: {len(lines)} of {len(found.counts)} calls of version {found.library} are"
        f" not as recorded with version {record.library}:"
    )
    print("\n".join(f"  {line}" for line in lines))
    print(f"If that is meant (fewer too), update {path.name} and commit it:\n  {update}")
    return 1


def skip(reason: str) -> int:
    """Report a skip in the form that ./dev counts and shows."""
    print(f"instructions.py: Skipped\n{reason}")
    return SKIPPED


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("check", "record"))
    parser.add_argument("--record", type=Path, required=True, help="the file of recorded counts")
    parser.add_argument("--compiler", required=True, help="name and major version")
    parser.add_argument("--build", required=True, help="build type and the user's own flags")
    parser.add_argument("--library", required=True, help="the library's version")
    parser.add_argument("--update", required=True, help="the command that records, for messages")
    parser.add_argument("programs", type=Path, nargs="+")
    options = parser.parse_args()
    found = Record(options.compiler, options.build.strip(), options.library, {})
    if not shutil.which("valgrind"):
        return skip("needs the Debian package valgrind")
    if options.verb == "check" and (reason := not_comparable(Record.read(options.record), found)):
        return skip(reason)
    for program in options.programs:
        for level in LEVELS:
            found.counts.update(count(program, level))
    if options.verb == "check":
        return check(options.record, found, options.update)
    found.write(options.record)
    print(f"{len(found.counts)} counts written to {options.record}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (CountError, OSError) as error:
        sys.exit(f"instructions.py: {error}")
