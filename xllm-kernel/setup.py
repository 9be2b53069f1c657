"""Build options of the package: pure Python unless a native part is asked for.

``XLLM_KERNEL_BUILD_SIMD=1`` adds the C++ kernels and their torch bridge, by CMake, and
``XLLM_KERNEL_BUILD_FASTCALL=1`` with it the builtins that make a call cheap, for the torch and the
Python that build. ``XLLM_KERNEL_BUILD_XLITE=1`` adds the bridge to xlite's launchers, for the
torch, torch_npu and xlite that are installed. Metadata is in pyproject.toml; compiler flags are
CMake's business.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import pprint
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PREFIX = "XLLM_KERNEL_BUILD_"


@dataclass(frozen=True)
class Part:
    """One native part.

    Attributes:
        target: CMake's.
        library: the file that it makes.
        marker: its marker module's name.
        record: where CMake says which tools it used.
        within: option of the part that it is of no use without.
        companions: CMake's targets of libraries that are built and kept with it.
    """

    target: str
    library: str
    marker: str
    record: str = "toolchain.json"
    within: str | None = None
    companions: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """CMake's, of all libraries."""
        return self.target, *self.companions

    @property
    def files(self) -> tuple[str, ...]:
        """All libraries, and last the marker module."""
        return self.library, *map(library_name, self.companions), marker_name(self)


def library_name(target: str) -> str:
    """Return the file name of a shared library by its target."""
    return f"lib{target}.so"


def marker_name(part: Part) -> str:
    """Return the file name of a part's marker module."""
    return f"{part.marker}.py"


SIMD, FASTCALL = "XLLM_KERNEL_BUILD_SIMD", "XLLM_KERNEL_BUILD_FASTCALL"
XLITE = "XLLM_KERNEL_BUILD_XLITE"
# Option to what it builds, in the order in which they are built.
OPTIONS = {
    SIMD: Part(
        "xllm_kernel_torch",
        "libxllm_kernel_torch.so",
        "simd",
        companions=("xllm_kernel_ceilings",),
    ),
    FASTCALL: Part(
        "xllm_kernel_fastcall",
        f"fastcall_native{sysconfig.get_config_var('EXT_SUFFIX')}",
        "fastcall",
        within=SIMD,
    ),
    XLITE: Part("xllm_kernel_xlite", "libxllm_kernel_xlite.so", "xlite", record="xlite.json"),
}


def fail(message: str) -> SystemExit:
    """Return the exception that ends a build with one sentence."""
    return SystemExit(f"xllm-kernel setup: {message}")


def chosen_options() -> tuple[str, ...]:
    """Read the build options from the environment.

    Returns:
        Names of those that are on.

    Raises:
        SystemExit: for an option that does not exist, a value other than 0 and 1, or an option
            without the one that it needs.
    """
    known = ", ".join(OPTIONS)
    for name, value in sorted(os.environ.items()):
        if not name.startswith(PREFIX):
            continue
        if name not in OPTIONS:
            raise fail(f"build options are {known}, got {name}={value}; unset or correct it")
        if value not in ("0", "1"):
            raise fail(f"{name} must be 0 or 1, got {value!r}; unset or correct it")
    chosen = tuple(name for name in OPTIONS if os.environ.get(name) == "1")
    if FASTCALL in chosen and SIMD not in chosen:
        raise fail(
            f"{FASTCALL}=1 needs {SIMD}=1 too, whose operators its builtins enter, got "
            f"{SIMD}={os.environ.get(SIMD, '')}; set both"
        )
    return chosen


def artifacts(name: str = "artifacts") -> Any:
    """Import a module of the package, so that build and run time hash and find alike."""
    sys.path.insert(0, str(ROOT / "python"))
    try:
        return importlib.import_module(f"xllm_kernel.{name}")
    finally:
        sys.path.pop(0)


class CleanBuild(build):
    """A build that starts empty: files of an earlier one must not get into a wheel."""

    def run(self) -> None:
        """Remove what an earlier build left, then build."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class PlatformWheel(bdist_wheel):
    """A wheel that depends on a Python version only where it holds the builtins."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag for Python, ABI and platform."""
        tag: tuple[str, str, str] = super().get_tag()
        return tag if self.root_is_pure or FASTCALL in options else ("py3", "none", tag[2])


class NativeBuild(build_ext):
    """Drives CMake, then puts libraries and marker modules where they belong."""

    def run(self) -> None:
        """Build each native part that was asked for; remove what lies within one and was not."""
        if not self.extensions:
            return
        in_place = self.inplace or getattr(self, "editable_mode", False)
        directory = folder_of(ROOT / "python" if in_place else Path(self.build_lib))
        directory.mkdir(parents=True, exist_ok=True)
        with locked(ROOT / "build" / "native.lock"):
            for name, part in OPTIONS.items():
                if name in options:
                    build_part(name, directory, ROOT / "build" / "native")
                elif part.within in options:
                    remove_part(part, directory)

    def get_outputs(self) -> list[str]:
        """List what a build adds to the wheel."""
        directory = folder_of(Path(self.build_lib))
        return [str(directory / name) for option in options for name in OPTIONS[option].files]

    def get_output_mapping(self) -> dict[str, str]:
        """Map nothing: no built file stands for one of the sources."""
        return {}

    def get_source_files(self) -> list[str]:
        """List nothing: MANIFEST.in names the C++ sources."""
        return []


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock among processes: builds that start together become one build and its reuse."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def folder_of(root: Path) -> Path:
    """Return the folder of built files under the one that holds the package."""
    return root / "xllm_kernel" / "_build"


def remove_part(part: Part, directory: Path) -> None:
    """Remove what an earlier build left of a part: its sources may since have changed."""
    for name in reversed(part.files):
        (directory / name).unlink(missing_ok=True)


def build_part(option: str, directory: Path, scratch: Path) -> None:
    """Build a native part into a folder, unless it is there already.

    Args:
        option: what to build.
        directory: receives the libraries and, last, the marker module.
        scratch: CMake's folders, one for each set of tools.
    """
    part = OPTIONS[option]
    tools = find_tools()
    sources = artifacts().source_hash(ROOT, part.marker)
    facts: dict[str, Any] = {}
    if option == FASTCALL:
        facts["python_abi"] = artifacts().python_abi()
    if option == XLITE:
        facts |= find_launchers()
    # Where torch lies decides nothing, which one it is does.
    which = {name: value for name, value in tools.items() if name != "torch"}
    key = digest(facts | which | {"sources": sources, "targets": part.targets})
    marker = directory / marker_name(part)
    if is_current(marker, key):
        say(f"{marker} is up to date")
        return
    work = scratch / digest(tools | ({"part": part.marker} if option == XLITE else {}))[:12]
    run_cmake(work, part.targets, xlite_flags(tools) if option == XLITE else simd_flags(tools))
    record = json.loads((work / part.record).read_text())
    marker.unlink(missing_ok=True)  # from here to the end there is no build, rather than a half one
    *libraries, _ = part.files
    for name in libraries:
        replace(directory / name, (work / name).read_bytes())
    manifest = {
        "schema_version": artifacts().SCHEMA_VERSION,
        "build_key": key,
        "source_hash": sources,
        "library": part.library,
        "library_sha256": artifacts().file_sha256(directory / part.library),
        "companions": {n: artifacts().file_sha256(directory / n) for n in libraries[1:]},
        "torch_built_with": tools["torch_version"],
        **facts,
        **{name: tuple(v) if isinstance(v, list) else v for name, v in record.items()},
    }
    if artifacts().source_hash(ROOT, part.marker) != sources:
        raise fail("the sources changed while they were built; build again")
    write_marker(marker, manifest)
    levels = f" ({', '.join(manifest['levels'])})" if "levels" in manifest else ""
    say(f"built {directory / part.library}{levels}")


def find_tools() -> dict[str, str]:
    """Find torch, CMake and a compiler.

    Raises:
        SystemExit: naming what is missing and how to get it.
    """
    asked = f"{options[0]}=1"
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise fail(
            f"{asked} needs torch in the environment that builds, found none in {sys.prefix}; "
            "install torch there, and give pip --no-build-isolation, since it otherwise builds in "
            "an empty environment"
        )
    compiler = os.environ.get("CXX") or "c++"
    for command, package in ((shlex.split(compiler)[0], "g++"), ("cmake", "cmake")):
        if shutil.which(command) is None:
            raise fail(
                f"{asked} needs {command}, found none; install it (Debian: apt-get install g++ "
                f"cmake ninja-build){', or set CXX to a C++20 compiler' * (package == 'g++')}"
            )
    headers = Path(sysconfig.get_paths()["include"])
    if FASTCALL in options and not (headers / "Python.h").is_file():
        raise fail(
            f"{FASTCALL}=1 needs Python.h, found none in {headers}; install Python's headers "
            f"(Debian: apt-get install python3-dev), or unset {FASTCALL}"
        )
    version = subprocess.run(
        [*shlex.split(compiler), "--version"], capture_output=True, text=True, check=True
    )
    return {
        "torch": str(Path(spec.origin).parent),
        "torch_version": importlib.metadata.version("torch"),
        "compiler": compiler,
        "compiler_version": version.stdout.partition("\n")[0],
        "flags": " ".join(os.environ.get(name, "") for name in ("CXXFLAGS", "LDFLAGS")),
        "machine": platform.machine(),
    }


def find_launchers() -> dict[str, Any]:
    """Find torch_npu and xlite's launcher libraries without importing either, and say which.

    Raises:
        SystemExit: naming each that is missing; and for launchers of another revision than the
            bridge is written for, unless that is allowed.
    """
    launchers = artifacts("launchers")
    folder = launchers.folder()
    missing = [] if launchers.package_folder("torch_npu") else ["torch_npu"]
    missing += [f"xlite's {name}" for name in launchers.missing_libraries(folder)]
    if missing:
        raise fail(
            f"{XLITE}=1 needs torch_npu and the launcher libraries of xlite in the environment "
            f"that builds, missing in {sys.prefix}: {', '.join(missing)}; install torch_npu for "
            "this torch, and xlite"
        )
    allowed = os.environ.get(launchers.ALLOW, "0")
    if allowed not in ("0", "1"):
        raise fail(f"{launchers.ALLOW} must be 0 or 1, got {allowed!r}; unset or correct it")
    found = launchers.found_revision()
    if not launchers.is_pinned(found):
        if allowed == "0":
            raise fail(
                f"{XLITE}=1 needs launchers of GVirt revision {launchers.REVISION}, whose "
                f"arguments the bridge passes, found {found} in {folder}; install that xlite, or "
                f"set {launchers.ALLOW}=1, which every report will say"
            )
        say(f"the launchers are of GVirt revision {found}, not {launchers.REVISION}: allowed")
    return {
        "torch_npu_built_with": importlib.metadata.version("torch_npu"),
        "revision_required": launchers.REVISION,
        "revision_found": found,
        "revision_allowed": not launchers.is_pinned(found),
        "launchers": {n: artifacts().file_sha256(folder / n) for n in launchers.LIBRARIES},
    }


def simd_flags(tools: dict[str, str]) -> list[str]:
    """Return what CMake must know for the kernels, their bridge and its builtins."""
    return [
        "-DXLLM_KERNEL_BUILD_TORCH=ON",
        "-DXLLM_KERNEL_BUILD_CEILINGS=ON",
        f"-DXLLM_KERNEL_TORCH_DIR={tools['torch']}",
        f"-DXLLM_KERNEL_BUILD_FASTCALL={'ON' if FASTCALL in options else 'OFF'}",
        f"-DXLLM_KERNEL_PYTHON_INCLUDE={sysconfig.get_paths()['include']}",
        f"-DXLLM_KERNEL_PYTHON_SUFFIX={sysconfig.get_config_var('EXT_SUFFIX')}",
    ]


def xlite_flags(tools: dict[str, str]) -> list[str]:
    """Return what CMake must know for the bridge to launchers."""
    launchers = artifacts("launchers")
    paths = ";".join(str(launchers.folder() / name) for name in launchers.LIBRARIES)
    return [
        "-DXLLM_KERNEL_BUILD_XLITE=ON",
        f"-DXLLM_KERNEL_TORCH_DIR={tools['torch']}",
        f"-DXLLM_KERNEL_TORCH_NPU_DIR={launchers.package_folder('torch_npu')}",
        f"-DXLLM_KERNEL_LAUNCHERS={paths}",
    ]


def run_cmake(work: Path, targets: tuple[str, ...], flags: list[str]) -> None:
    """Configure and build in a folder of CMake's own."""
    say(f"configuring and building {', '.join(targets)} in {work}")
    configure = ["cmake", "-S", str(ROOT), "-B", str(work), "-DCMAKE_BUILD_TYPE=Release", *flags]
    if shutil.which("ninja"):
        configure += ["-G", "Ninja"]
    if work.exists() and subprocess.run(configure, check=False).returncode != 0:
        say(f"{work} is of no use, from an interrupted build or another place: starting afresh")
        shutil.rmtree(work)
    if not work.exists():
        require(configure)
    jobs = os.environ.get("MAX_JOBS") or str(os.cpu_count() or 1)
    require(["cmake", "--build", str(work), "--target", *targets, "--parallel", jobs])


def require(command: list[str]) -> None:
    """Run a command that must succeed, its output on ours."""
    status = subprocess.run(command, check=False).returncode
    if status != 0:
        raise fail(f"'{shlex.join(command)}' ended with status {status}; its messages are above")


def is_current(marker: Path, key: str) -> bool:
    """Say whether a folder holds what this key builds; by content, never by times."""
    if not marker.is_file():
        return False
    namespace: dict[str, Any] = {}
    exec(compile(marker.read_text(), str(marker), "exec"), namespace)
    manifest = namespace.get("MANIFEST", {})
    if manifest.get("build_key") != key:
        return False
    libraries = {manifest["library"]: manifest["library_sha256"], **manifest["companions"]}
    return all(
        (marker.parent / name).is_file() and artifacts().file_sha256(marker.parent / name) == digest
        for name, digest in libraries.items()
    )


def write_marker(marker: Path, manifest: dict[str, Any]) -> None:
    """Write the module whose presence says that the build is complete."""
    # Bytecode of an older one could pass for this one's: same size, same second.
    for stale in marker.parent.glob(f"__pycache__/{marker.stem}.*"):
        stale.unlink()
    text = '"""What the native build made; written by setup.py, not to be edited."""\n\n'
    replace(marker, f"{text}MANIFEST = {pprint.pformat(manifest, width=100)}\n".encode())


def replace(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def digest(facts: dict[str, Any]) -> str:
    """Hash facts."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def say(text: str) -> None:
    """Show progress, in order with what CMake prints."""
    print(f"xllm-kernel setup: {text}", flush=True)


options = chosen_options()
setup(
    package_dir={"": "python"},
    # The build's own folder is never a package of the sources.
    packages=find_packages("python", include=["xllm_kernel*"], exclude=["xllm_kernel._build*"]),
    package_data={
        "xllm_kernel": ["py.typed"],
        "xllm_kernel.numerics": ["activations.safetensors"],
        "xllm_kernel.benchmark.report": ["page.css", "page.js"],
    },
    ext_modules=[
        Extension(f"xllm_kernel._build.{OPTIONS[name].marker}", sources=[]) for name in options
    ],
    cmdclass={"bdist_wheel": PlatformWheel, "build": CleanBuild, "build_ext": NativeBuild},
    # One folder for each flavour, so that neither finds the other's files.
    options={"build": {"build_base": f"build/{'native-wheel' if options else 'pure-wheel'}"}},
)
