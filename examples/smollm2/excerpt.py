"""Write an excerpt of captured activations, as the package's numerical validation carries one.

`python examples/smollm2/excerpt.py CAPTURE FILE` reads what `generate.py --capture CAPTURE` saved.
"""

from __future__ import annotations

import sys
from pathlib import Path

from safetensors.torch import load_file, save_file

# Early and late layers, where a first token's activations become massive, the output's norm.
LAYERS = ("003", "006", "021", "024", "059", "060")
TOKENS = [0, 1, 23, 45]
FACTS = {
    "source": "SmolLM2-135M-Instruct",
    "license": "Apache-2.0, as the model's",
    "eps": "1e-05",
    "what": "residual stream, what is added to it and the weight of norms, from a prefill of the "
    "first prompt of examples/smollm2/generate.py; tokens 0, 1, 23, 45",
}


def excerpt(capture: Path, file: Path) -> None:
    """Save rows of a few norms: of each, the stream before, the difference to it, the weight.

    Args:
        capture: folder of captured norm calls, in order; the stream before a norm is what the norm
            before it was fed.
        file: what to write.
    """
    paths = sorted(capture.glob("*.prefill.*.safetensors"))
    tensors = {}
    for ordinal in LAYERS:
        number = int(ordinal)
        before, now = (load_file(paths[n]) for n in (number - 1, number))
        name = paths[number].name.removeprefix(f"{ordinal}.prefill.").removesuffix(".safetensors")
        residual = before["input"][TOKENS]
        tensors[f"{name}/residual"] = residual.clone()
        tensors[f"{name}/addend"] = now["input"][TOKENS] - residual
        tensors[f"{name}/weight"] = now["weight"]
    save_file(tensors, file, metadata=FACTS)


if __name__ == "__main__":
    excerpt(Path(sys.argv[1]), Path(sys.argv[2]))
