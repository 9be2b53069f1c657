"""Plant faults in modules of the package and count those that the tests notice.

Each fault (a mutant) is one small change that Cosmic Ray makes: another comparison, another number,
a condition or a statement less. It runs the few tests that guard the module, in a copy of the
package. The score is the share of the mutants that a test noticed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import OPERATOR_PROVIDERS

from mutation.explained import LIST, Explained, ListError, check, parse
from mutation.mutants import Mutant, sample
from mutation.score import TARGET_PERCENT, Score, describe, table
from mutation.targets import TARGETS, Target
from mutation.trial import PACKAGE, Bench, Outcome, TrialError, limit_of, run_all

SAMPLE = 25


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 when the score of all modules together reaches the target, 1 when it does not or could not
        be taken, 2 for wrong usage.
    """
    options = _parser().parse_args(arguments)
    try:
        scores = _attack(options)
    except (TrialError, ListError) as error:
        print(f"mutation: {error}", file=sys.stderr)
        return 1
    total = Score.total(scores)
    print()
    for mutant in total.survivors:
        print(f"{describe(mutant)}\n")
    print("\n".join(table(scores)))
    enough = total.percent >= TARGET_PERCENT
    verdict = "reaches" if enough else "MISSES"
    print(
        f"\n{total.percent:.1f} % {verdict} the target of {TARGET_PERCENT} % (seed {options.seed})"
    )
    return 0 if enough else 1


def _parser() -> argparse.ArgumentParser:
    known = [target.module for target in TARGETS]
    parser = argparse.ArgumentParser(prog="./dev mutation", description=__doc__)
    parser.add_argument("--modules", nargs="+", metavar="MODULE", choices=known, default=known)
    help_ = "mutants a module at most, 0 for all (default: %(default)s)"
    parser.add_argument("--sample", type=int, default=SAMPLE, help=help_)
    parser.add_argument("--seed", type=int, default=0, help="draws the sample (default: 0)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help=argparse.SUPPRESS)
    parser.add_argument("--copies", type=Path, required=True, help=argparse.SUPPRESS)
    return parser


def _attack(options: argparse.Namespace) -> list[Score]:
    _check_operators()
    explained = parse(LIST.read_text(encoding="utf-8"))
    jobs = len(os.sched_getaffinity(0))
    chosen = [target for target in TARGETS if target.module in options.modules]
    with contextlib.ExitStack() as stack:
        benches = [Bench(options.copies / str(n), options.python) for n in range(jobs)]
        for bench in benches:
            stack.callback(bench.close)
        return [_attack_module(target, benches, options, explained) for target in chosen]


def _attack_module(
    target: Target, benches: list[Bench], options: argparse.Namespace, explained: list[Explained]
) -> Score:
    code = (PACKAGE / "python" / "xllm_kernel" / target.module).read_text(encoding="utf-8")
    check(explained, target.module, code)
    started = time.monotonic()
    limit = limit_of(benches[0], target)
    places, mutants = sample(target.module, code, options.sample or len(code), options.seed)

    def tell(mutant: Mutant, outcome: Outcome) -> None:
        if outcome is not Outcome.KILLED:
            where = f"{mutant.module}:{mutant.site.line}"
            print(
                f"  {outcome.value}: {where}: {mutant.added or 'less ' + mutant.removed}",
                flush=True,
            )

    score = Score.of(
        target.module, places, run_all(benches, target, mutants, limit, tell), explained
    )
    taken = time.monotonic() - started
    print(f"{target.module}: {score.percent:.1f} % of {score.sampled}, {taken:.0f} s", flush=True)
    return score


def _check_operators() -> None:
    """Try our own operators on their examples.

    Raises:
        TrialError: where one does something else, as under another version of Cosmic Ray.
    """
    provider = OPERATOR_PROVIDERS["xllm"]
    for operator in (provider[name] for name in provider):
        for example in operator.examples():
            got = mutate_code(example.pre_mutation_code, operator(), example.occurrence)
            if got != example.post_mutation_code:
                raise TrialError(
                    f"{operator.__name__}: must make {example.post_mutation_code!r} of "
                    f"{example.pre_mutation_code!r}, made {got!r}"
                )


if __name__ == "__main__":
    sys.exit(main())
