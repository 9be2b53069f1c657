"""Faults that Cosmic Ray does not make itself, written as its operators.

Each takes something away or turns a question round, as a slip of the hand would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import OPERATOR_PROVIDERS
from parso.python.tree import Keyword, Name
from parso.tree import NodeOrLeaf

Position = tuple[tuple[int, int], tuple[int, int]]


class DropStatement(Operator):  # type: ignore[misc]  # untyped library
    """Leaves out a statement that does something: a call, a raise, a store, a returned value."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        """Yield the statement's place."""
        if _acts(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """Put ``pass`` there, or a bare ``return``."""
        instead = "return" if node.type == "return_stmt" else "pass"
        return Keyword(instead, node.start_pos, prefix=node.get_first_leaf().prefix)

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """Show what it does."""
        return (
            Example("f(x)\n", "pass\n"),
            Example("if x:\n    raise E(x) from e\n", "if x:\n    pass\n"),
            Example("x.y = 1\nz[0] = 2\n", "x.y = 1\npass\n", occurrence=1),
            Example("n += 1\n", "pass\n"),
            Example("def f():\n    return x\n", "def f():\n    return\n"),
        )


class DropOperand(Operator):  # type: ignore[misc]  # untyped library
    """Leaves out one of the conditions that ``and`` or ``or`` joins."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        """Yield each operand's place."""
        if node.type in ("and_test", "or_test"):
            for operand in node.children[::2]:
                yield operand.start_pos, operand.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """Take the operand out, and the word that joins it."""
        prefix = node.get_first_leaf().prefix
        at = 2 * index
        del node.children[max(at - 1, 0) : at + 2 - bool(at)]
        node.get_first_leaf().prefix = prefix
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """Show what it does."""
        return (
            Example("x = a and b and c", "x = b and c"),
            Example("x = a and b and c", "x = a and c", occurrence=1),
            Example("x = a or b", "x = a", occurrence=1),
        )


class SwapBuiltin(Operator):  # type: ignore[misc]  # untyped library
    """Calls the opposite function: ``all`` for ``any``, ``max`` for ``min``, no order for one."""

    _opposites: ClassVar = {
        "any": "all",
        "all": "any",
        "min": "max",
        "max": "min",
        "sorted": "list",
    }

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        """Yield the function's place."""
        calls = node.type == "name" and node.value in self._opposites
        following = node.get_next_leaf() if calls else None
        if following is not None and following.value == "(" and node.get_previous_leaf() != ".":
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """Put the opposite there."""
        return Name(self._opposites[node.value], node.start_pos, prefix=node.prefix)

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """Show what it does."""
        return (
            Example("x = not any(y)", "x = not all(y)"),
            Example("x = min(y, max(z))", "x = min(y, min(z))", occurrence=1),
        )


def _acts(node: NodeOrLeaf) -> bool:
    if node.parent is None or node.parent.type != "simple_stmt":
        return False
    if node.type in ("atom_expr", "raise_stmt", "del_stmt", "yield_expr"):
        return True
    if node.type == "keyword":
        return bool(node.value == "raise")
    if node.type == "return_stmt":
        # A bare return is None, which is as false as False to whoever asks.
        return node.children[1].get_code(include_prefix=False) not in ("None", "False")
    if node.type != "expr_stmt" or node.children[1].type == "annassign":
        return False
    # Without its store a local name would be unknown, which no test could miss.
    return bool(node.children[0].type == "atom_expr" or node.children[1] != "=")


class _Provider:
    """How Cosmic Ray asks for operators that are not its own."""

    _operators: ClassVar = {
        operator.__name__: operator for operator in (DropStatement, DropOperand, SwapBuiltin)
    }

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __getitem__(self, name: str) -> type[Any]:
        return self._operators[name]


def register() -> None:
    """Add the operators to Cosmic Ray's own."""
    OPERATOR_PROVIDERS["xllm"] = _Provider()
