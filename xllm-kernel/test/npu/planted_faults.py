"""Wrong bridges, one mistake each, as replacements in the real one; and the one build of them all.

Each becomes an operator namespace of its own in a single library, which costs PyTorch's headers
once.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch_npu

from xllm_kernel import launchers

CSRC = Path(__file__).resolve().parents[2] / "csrc"
BRIDGE = CSRC / "xlite/rms_norm.cpp"
# What the bridge stands on, unchanged.
BENEATH = ("torch/refusal.cpp", "xlite/clauses.cpp", "xlite/processor.cpp", "xlite/rows.cpp")


@dataclass(frozen=True)
class Fault:
    """One mistake.

    Attributes:
        replacements: text of the bridge, and what stands there instead.
        scenario: name of what must catch it.
        seen: pattern of what that says.
        environment: what the scenario needs.
    """

    replacements: tuple[tuple[str, str], ...]
    scenario: str
    seen: str
    environment: Mapping[str, str] = field(default_factory=dict)


_ENQUEUED = 'at_npu::native::OpCommand::RunOpApi(\n      "xlite_rms_norm",\n      Launch{'
_LAST_FIELD = ".stream = stream.stream(false)});"
_LAUNCHER_BEFORE_FLOAT32_OUTPUT = (
    "using Other = std::uint32_t(\n"
    "        std::uint32_t, aclrtStream, void*, void*, void*, void*, void*,\n"
    "        std::uint32_t, std::uint32_t, float, int, std::uint32_t,\n"
    "        std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, bool,\n"
    "        void*, std::uint32_t, std::uint32_t);\n"
    "    const std::uint32_t status = reinterpret_cast<Other&>(launcher)("
)

WRONG = r"elements are wrong"
RACE = r"race"

FAULTS: dict[str, Fault] = {
    "stream_taken_on_the_consumer_thread": Fault(
        (("blocks, stream,", "blocks, c10_npu::getCurrentNPUStream().stream(false),"),),
        "a_call_runs_on_the_callers_stream",
        RACE,
    ),
    "no_record_stream": Fault(
        (
            ("  input.record_stream(stream.unwrap());\n", ""),
            ("  weight.record_stream(stream.unwrap());\n", ""),
        ),
        "unrecorded_arguments_may_be_freed_early",
        RACE,
    ),
    "launch_overtakes_the_queue": Fault(
        (
            (_ENQUEUED, "static_cast<void>(Launch{"),
            (_LAST_FIELD, _LAST_FIELD.replace("});", "}());")),
        ),
        "a_call_follows_queued_work",
        WRONG + "|not submitted by the queue",
    ),
    "contiguous_copy_freed_early": Fault(
        (
            ("  Rows input;\n", "  Rows input;\n  void* data;\n"),
            (".input = std::move(rows),", ".input = std::move(rows),\n.data = data,"),
            ("stream, input.tensor.data_ptr(),", "stream, data,"),
            ("input.tensor.scalar_type()", "output.scalar_type()"),
            (
                "  Rows rows(input);\n",
                "  Rows rows(input);\n"
                "  void* const data = rows.tensor.data_ptr();\n"
                "  rows.tensor = at::Tensor();\n",
            ),
        ),
        "copies_of_strided_arguments_stay_apart",
        WRONG,
    ),
    "wrong_device": Fault(
        (
            ("const c10_npu::NPUGuard guard(input.device());", ""),
            ("getCurrentNPUStream(input.device().index())", "getCurrentNPUStream()"),
        ),
        "a_call_on_another_device_leaves_the_current_one",
        r"device",
    ),
    "no_device_guard": Fault(
        (("const c10_npu::NPUGuard guard(input.device());", ""),),
        "a_call_on_another_device_leaves_the_current_one",
        r"device",
    ),
    "eps_dropped": Fault(
        ((".eps = static_cast<float>(eps)", ".eps = 0.0F"),), "eps_counts", r"eps=.*" + WRONG
    ),
    "row_stride_ignored": Fault(
        (("static_cast<std::uint32_t>(input.step)", "width"),), "values_of_every_layout", WRONG
    ),
    "out_fp32_garbage": Fault(
        (
            ("const std::uint32_t status = launcher(", _LAUNCHER_BEFORE_FLOAT32_OUTPUT),
            ("/*float32_output=*/false", "0xa5a5a5a5U"),
        ),
        "values_of_every_dtype_and_shape",
        r"out_fp32",
    ),
    "launch_on_an_unsupported_processor": Fault(
        (
            ("  clauses.supported_processor();\n", ""),
            ("processor().vector_cores.at(\n", "std::max<std::size_t>(8,\n"),
        ),
        "an_unsupported_processor_is_refused",
        r"DID NOT RAISE",
        {"ASCEND_SIM_SOC": "Ascend310P3"},
    ),
    "argument_block_off_by_one": Fault(
        (
            (
                "/*added=*/nullptr,\n        weight.data_ptr(),",
                "/*added=*/weight.data_ptr(),\n        nullptr,",
            ),
        ),
        "values_of_every_dtype_and_shape",
        WRONG,
    ),
    "host_waits_inside": Fault(
        ((_LAST_FIELD, _LAST_FIELD + "\n  stream.synchronize();"),),
        "a_call_does_not_wait_for_the_device",
        r"waited",
    ),
}
CONTROL = "no_fault"


def build(folder: Path) -> Path:
    """Compile every fault, and the bridge as it is under the name of ``CONTROL``.

    Args:
        folder: receives the sources and the library.

    Returns:
        The library.
    """
    names = {CONTROL: (), **{name: fault.replacements for name, fault in FAULTS.items()}}
    for name, replacements in names.items():
        (folder / f"{name}.cpp").write_text(_variant(name, replacements))
    unit = folder / "all.cpp"
    unit.write_text("".join(f'#include "{file}"\n' for file in (*BENEATH, *_files(names))))
    library = folder / "libplanted_faults.so"
    command = [*shlex.split(os.environ.get("CXX") or "c++"), "-std=c++20", "-O0", "-w"]
    command += ["-fPIC", "-shared", str(unit), "-o", str(library), f"-I{CSRC}", f"-I{folder}"]
    npu, pytorch = (Path(module.__path__[0]) for module in (torch_npu, torch))
    headers = (pytorch / "include", npu / "include", npu / "include/third_party/acl/inc")
    for path in (*headers, npu / "include/third_party/hccl/inc"):
        command += ["-isystem", str(path)]
    xlite = launchers.folder()
    command += [str(xlite / name) for name in launchers.LIBRARIES]
    command += [f"-Wl,-rpath,{xlite}", "-Wl,--allow-shlib-undefined"]
    command += [str(npu / "lib/libtorch_npu.so")]
    command += [str(pytorch / "lib" / name) for name in ("libtorch_cpu.so", "libc10.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return library


def _files(names: Mapping[str, object]) -> list[str]:
    return [f"{name}.cpp" for name in names]


def _variant(name: str, replacements: tuple[tuple[str, str], ...]) -> str:
    """Return the bridge with a fault, as an operator of a namespace of its own."""
    text = BRIDGE.read_text()
    own = f"xllm_kernel::xlite::{name}"
    renamed = (
        ("namespace xllm_kernel::xlite {", f"namespace {own} {{"),
        ("&xllm_kernel::xlite::", f"&{own}::"),
        ("(xllm_kernel, ", f"({name}, "),
    )
    for old, new in (*replacements, *renamed):
        assert old in text, f"{BRIDGE.name} no longer holds what {name} replaces: {old}"
        text = text.replace(old, new)
    return text
