"""The mutants of a module, and a seeded sample of them.

Lists and writes them with Cosmic Ray; runs nothing.
"""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from mutation import operators

operators.register()

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Site:
    """Where a mutant lies, and what makes it.

    Attributes:
        operator: Cosmic Ray's name of the operator.
        occurrence: which of the operator's places in the module, from 0.
        line: number of the line, from 1.
        definition: name of the function or class around it, or "" for the module.
    """

    operator: str
    occurrence: int
    line: int
    definition: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one fault.

    Attributes:
        module: path below the package.
        site: where the fault lies.
        code: the whole faulty module.
        removed: the lines that it lacks, stripped and joined.
        added: the lines that it has instead, stripped and joined.
    """

    module: str
    site: Site
    code: str
    removed: str
    added: str


def sites(code: str) -> list[Site]:
    """Return every place where an operator can plant a fault that a run can notice."""
    tree = get_ast(code)
    nodes = list(ast_nodes(tree))
    ignored = list(_only_for_readers(code))
    found: list[Site] = []
    for name in sorted(operator_names()):
        kind = get_operator(name)
        if kind.arguments() or _confuses_identity(name):  # arguments name variables of a project
            continue
        places = [(node, at) for node in nodes for at in kind().mutation_positions(node)]
        for occurrence, (node, (start, _)) in enumerate(places):
            if not any(begin <= start < end for begin, end in ignored):
                around = ASTQuery(node).get_definition_name() or ""
                found.append(Site(name, occurrence, start[0], around))
    return found


def sample(module: str, code: str, count: int, seed: int) -> tuple[int, list[Mutant]]:
    """Draw mutants of a module.

    Args:
        module: its path below the package.
        code: its source.
        count: how many to draw at most.
        seed: the same one draws the same mutants of the same source.

    Returns:
        How many places there are in all, and the drawn mutants: different ones that Python
        compiles.
    """
    every = sites(code)
    order = random.Random(f"{seed} {module}").sample(every, len(every))
    drawn: list[Mutant] = []
    known = {code}
    for site in order:
        if len(drawn) == count:
            break
        mutated = mutate_code(code, get_operator(site.operator)(), site.occurrence)
        if mutated is None or mutated in known or not _compiles(mutated):
            continue
        known.add(mutated)
        drawn.append(Mutant(module, site, mutated, *_difference(code, mutated)))
    return len(every), drawn


def _confuses_identity(name: str) -> bool:
    """Say whether an operator swaps identity with equality or order.

    Whether equal strings are one object is the interpreter's affair; what ``<`` does to None is
    no question.
    """
    _, _, swap = name.partition("ReplaceComparisonOperator_")
    return bool(swap) and len({part in ("Is", "IsNot") for part in swap.split("_")}) == 2


def _only_for_readers(code: str) -> Iterator[tuple[Place, Place]]:
    """Yield what no run evaluates: annotations (by the future import) and imports for types."""
    for node in ast.walk(ast.parse(code)):
        annotations = [getattr(node, name, None) for name in ("annotation", "returns")]
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            annotations.append(node.test)
        for found in annotations:
            if isinstance(found, ast.expr):
                # Columns are bytes there and characters here: alike, the sources being ASCII.
                end = (found.end_lineno or 0, found.end_col_offset or 0)
                yield (found.lineno, found.col_offset), end


def _compiles(code: str) -> bool:
    try:
        compile(code, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _difference(before: str, after: str) -> tuple[str, str]:
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    removed = [line[2:].strip() for line in lines if line.startswith("- ")]
    added = [line[2:].strip() for line in lines if line.startswith("+ ")]
    return " ".join(removed), " ".join(added)
