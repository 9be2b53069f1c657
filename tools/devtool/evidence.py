"""Evidence from a machine with an NPU: the guide's commands, run there and bundled.

Uses the environment it is called in and this checkout's package; changes nothing of either. Refuses
a simulated runtime.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tarfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from devtool.npu import NATIVE, TESTS, XLITE, short_name
from devtool.shell import BUILD, PACKAGE, ROOT, DevError, log_path, step

PREFIX = "npu-evidence"
EXIT_FAILED, EXIT_COULD_NOT_RUN = 1, 3
SHAPES = ("--rows", "1", "16", "--widths", "6144")

# Asked in a process of its own, for which runtime it loads decides what may be said of the results.
PROBE = """
import hashlib, json, pathlib
import xllm_kernel
from xllm_kernel.errors import DependencyAbsentError
from xllm_kernel.platforms import get_platform
package = pathlib.Path(xllm_kernel.__file__).parent
npu = get_platform("npu")
found = {}
try:
    npu.require()
except DependencyAbsentError as error:
    found["absent"] = str(error)
else:
    maps = pathlib.Path("/proc/self/maps").read_text().split()
    names = ("libascendcl.so", "libhccl.so", "libtorch_npu.so")
    loaded = {p for p in maps if p.startswith("/") and pathlib.Path(p).name in names}
    built = {str(p) for p in (package / "_build").glob("*.*")}
    digest = lambda path: hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    found |= {"evidence": npu.evidence, "environment": npu.environment()}
    found["binaries"] = {path: digest(path) for path in sorted(loaded | built)}
print("PROBE" + json.dumps(found))
"""


@dataclass(frozen=True)
class Step:
    """One command that was run."""

    name: str
    command: str
    exit_status: int
    duration_s: float


def gather(folder: Path = BUILD) -> int:
    """Run the guide's commands for NPUs here and bundle what they say; return the exit status.

    Args:
        folder: receives the archive.
    """
    found = probe()
    if "absent" in found:
        print(f"./dev npu-evidence: {found['absent']}")
        return EXIT_COULD_NOT_RUN
    if found["evidence"] != "device":
        raise DevError(
            f"results here would be '{found['evidence']}', not 'device': this environment loads "
            "the simulated Ascend runtime, whose results are no evidence for an NPU; run it "
            "outside of ascend-sim/run, on a machine with a device"
        )
    name = f"{PREFIX}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    place = folder / name
    place.mkdir(parents=True)
    _note_npu_smi(place / "npu-smi-before.txt")
    steps = [*_explain(place), *_guide(place)]
    _note_npu_smi(place / "npu-smi-after.txt")
    _write_manifest(place, found, steps)
    archive = folder / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz") as bundle:
        bundle.add(place, arcname=name)
    failed = [one.name for one in steps if one.exit_status]
    print(f"\nFailed: {', '.join(failed)}" if failed else "\nAll commands passed.")
    print(f"Evidence: {archive}\nsha256: {_digest(archive)}")
    return EXIT_FAILED if failed else 0


def probe() -> dict[str, Any]:
    """Ask the package, in this environment's Python, what it runs on.

    Raises:
        DevError: where it cannot say, torch_npu being broken for instance.
    """
    command = [_python(), "-c", PROBE]
    done = subprocess.run(
        command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
    )
    answer = next((line for line in done.stdout.splitlines() if line.startswith("PROBE")), None)
    if answer is None:
        raise DevError(f"{_python()} cannot tell what device it has:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(answer.removeprefix("PROBE"))
    return found


def _environment(**extra: str) -> dict[str, str]:
    """Return the caller's environment, with this checkout's package before an installed one."""
    paths = [str(PACKAGE / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": ":".join(paths), **extra}


def _python() -> str:
    """Return the Python of the environment that the caller activated."""
    return shutil.which("python") or "python3"


def _explain(place: Path) -> list[Step]:
    """Record what a worker would get here."""
    command = [_python(), "-m", "xllm_kernel", "explain", "--device", "npu", "--json"]
    return [_run(place, "explain", command)]


def _guide(place: Path) -> list[Step]:
    """Run numerics, benchmark and tests, each implementation by itself, one after the other."""
    steps = []
    for implementation in _implementations():
        short = short_name(implementation)
        common = ["--operation", "rms_norm", "--device", "npu", "--implementation", implementation]
        common += [*SHAPES, "--revision", _git("rev-parse", "HEAD")]
        for kind, options in (
            ("numerics", ["--mode", "eager"]),
            ("benchmark", ["--mode", "aclgraph", "--iterations", "50"]),
        ):
            output = place / f"{short}-{kind}.json"
            command = [_python(), "-m", f"xllm_kernel.{kind}", *common, *options]
            steps.append(_run(place, f"{short}-{kind}", [*command, "--output", str(output)]))
            _require_device_evidence(output)
        report = place / f"{short}-tests.xml"
        command = [_python(), "-m", "pytest", "-q", TESTS[implementation], f"--junitxml={report}"]
        chosen = {"XLLM_KERNEL_OVERRIDE_RMS_NORM": implementation}
        steps.append(_run(place, f"{short}-tests", command, **chosen))
    return steps


def _implementations() -> list[str]:
    """Return what can be run: the vendor's operator, and xlite where its bridge was built."""
    built = (PACKAGE / "python/xllm_kernel/_build/xlite.py").is_file()
    if not built:
        print("Going on without xlite: its bridge was not built (see xllm-kernel/README.md).")
    return [NATIVE, XLITE] if built else [NATIVE]


def _run(place: Path, name: str, command: list[str], **variables: str) -> Step:
    """Run a command to its end, whatever comes of it, and keep its log."""
    title, began = f"Evidence: {name}", time.monotonic()
    status = step(title, *command, check=False, env=_environment(**variables))
    shutil.copy(log_path(title), place / f"{name}.log")
    return Step(name, shlex.join(command), status, round(time.monotonic() - began, 3))


def _require_device_evidence(report: Path) -> None:
    """Refuse a report that was not obtained on a device, should another runtime have got in."""
    with contextlib.suppress(FileNotFoundError):
        evidence = json.loads(report.read_text(encoding="utf-8"))["evidence"]
        if evidence not in ("device", None):
            raise DevError(f"{report} says '{evidence}', not 'device'; nothing was bundled")


def _note_npu_smi(path: Path) -> None:
    """Write what npu-smi says, or that there is none."""
    if shutil.which("npu-smi") is None:
        path.write_text("npu-smi: not found\n")
        return
    done = subprocess.run(
        ["npu-smi", "info"], capture_output=True, text=True, timeout=60, check=False
    )
    path.write_text(done.stdout + done.stderr)


def _write_manifest(place: Path, found: dict[str, Any], steps: list[Step]) -> None:
    """Write last what everything else is: source, software, commands, and the files' digests."""
    files = {path.name: _digest(path) for path in sorted(place.iterdir())}
    manifest = {
        "schema_version": 1,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "revision": _git("rev-parse", "HEAD"),
        "uncommitted": _git("status", "--porcelain").splitlines(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        **found,
        "steps": [asdict(one) for one in steps],
        "sha256": files,
    }
    (place / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def _git(*arguments: str) -> str:
    """Ask git about this checkout."""
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DevError(f"git must know this checkout, it says: {done.stderr.strip()}")
    return done.stdout.strip()


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
