"""Write the domains' tables into docs/operators/, or with --check say which are out of date.

Reads the domains alone; needs the package, no framework.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from xllm_kernel import catalog
from xllm_kernel.catalog import Operation
from xllm_kernel.domain import Domain

DOCS = Path(__file__).resolve().parents[1] / "docs/operators"
BEGIN = "<!-- Made from the domains by ./dev format; change those. -->"
END = "<!-- End of what is made from the domains. -->"


def domains_of(operation: Operation) -> dict[str, Domain | None]:
    """Return an operation's domains by device and solution, in order of declaration.

    An implementation that has none has None. The rule of the names: ``domain.py`` beside the
    backends holds ``<SOLUTION>_DOMAIN``.
    """
    found: dict[str, Domain | None] = {}
    for backend in operation.backends:
        folder = backend.module.rpartition(".")[0]
        module = importlib.import_module(f"{folder}.domain")
        name = backend.implementations[0].removesuffix(f".{operation.contract.operation}")
        found[name] = getattr(module, f"{backend.solution.upper()}_DOMAIN", None)
    return found


def table(domains: dict[str, Domain | None]) -> str:
    """Return a table of every clause, and by implementation when it is checked."""
    checked = {name: domain for name, domain in domains.items() if domain is not None}
    clauses = list(dict.fromkeys((c.name, c.text) for d in checked.values() for c in d.clauses))
    names = list(dict.fromkeys(name for name, _ in clauses))
    clauses.sort(key=lambda clause: names.index(clause[0]))  # those of one name together
    places = {
        name: {(c.name, c.text): str(n) for n, c in enumerate(domain.clauses, 1)}
        for name, domain in checked.items()
    }
    head = ["clause", "what must hold", *(f"`{name}`" for name in checked)]
    rows = [head]
    for name, text in clauses:
        order = [places[one].get((name, text), "") for one in checked]
        rows.append([f"`{name}`", text, *order])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def section(domains: dict[str, Domain | None]) -> str:
    """Return all that stands between the marks."""
    without = [f"`{name}`" for name, domain in domains.items() if domain is None]
    lines = [
        "The numbers are the order of the checks; where there is none, that is not checked. The "
        "first clause that does not hold is named in the error.",
        "",
        table(domains),
    ]
    if without:
        lines += ["", f"{', '.join(without)}: no domain of ours, the vendor's operator checks."]
    return "\n".join(lines)


def renewed(text: str, operation: Operation) -> str:
    """Return a page with its section as the domains have it.

    Raises:
        ValueError: for a page without the two marks, each once and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in rest or END in after:
        raise ValueError(f"the page must hold '{BEGIN}' and then '{END}', once each")
    return f"{before}{BEGIN}\n\n{section(domains_of(operation))}\n\n{END}{after}"


def main(*options: str) -> int:
    """Renew every page; with ``--check`` only compare, and return 1 for a difference."""
    stale = []
    for name, operation in catalog.operations().items():
        page = DOCS / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        wanted = renewed(text, operation)
        if wanted != text:
            stale.append(page.name)
            if "--check" not in options:
                page.write_text(wanted, encoding="utf-8")
    if stale and "--check" in options:
        print(f"out of date: {', '.join(stale)}; run ./dev format")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
