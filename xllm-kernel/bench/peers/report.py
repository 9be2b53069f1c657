"""The report: rows as JSON values with every block, and tables for people in Markdown.

Measures nothing, knows no operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from peers import blocks
from peers.blocks import Rule
from peers.ratios import figure, ratio
from peers.run import Group, Key
from xllm_kernel.benchmark.report import microseconds
from xllm_kernel.benchmark.statistics import summarize
from xllm_kernel.numerics.render import NOTHING

Row = dict[str, Any]

_LEGEND = (
    "Medians in microseconds a call; `= N x [low, high]` is the library's time over ours in the "
    "same run, with a 95 % bootstrap interval. `too few: N of M`: so many blocks were undisturbed, "
    "which gives no figure. `of best copy`: the time of the quickest copy of the bytes that must "
    "move over ours (and of an update in place). `gain of threads`: one thread's time over this "
    "one's, and the copy's."
)


def rows(group: Group, ours: str, rule: Rule) -> list[Row]:
    """Return a row of JSON values for each number of threads.

    Args:
        group: what was measured.
        ours: the contender that all others are divided by.
        rule: says how many blocks make a figure.
    """
    names = dict.fromkeys(threads for _, threads in [*group.contenders, *group.left_out])
    return [_row(group, threads, ours, rule) for threads in names]


def _row(group: Group, threads: int, ours: str, rule: Rule) -> Row:
    times = {key: blocks.kept(taken) for key, taken in group.blocks.items()}
    medians = {key: figure(samples, rule.enough) for key, samples in times.items()}
    copy, update = (_quickest(group, medians, threads, kind) for kind in ("copy", "update"))
    contenders = {}
    for key, contender in group.contenders.items():
        name, on = key
        if on != threads:
            continue
        us = medians[key]
        against = ratio(times[key], times.get((ours, threads), []), rule.enough)
        alone = ratio(times.get((name, 1), []), times[key], rule.enough)
        contenders[name] = {
            "us": us,
            "over_ours": against and asdict(against),
            "gain_over_one_thread": alone and asdict(alone),
            "share_of_best_copy": copy["us"] / us if copy and us else None,
            "share_of_update": update["us"] / us if update and us else None,
            "ceiling": contender.ceiling,
            "largest_error_steps": contender.error,
            "calls_a_block": contender.calls,
            "kept": len(times[key]),
            "taken": len(group.blocks[key]),
            "dropped": blocks.drops(group.blocks[key]),
            "reset_us": summarize(contender.resets_us) if contender.resets_us else None,
            "blocks": [asdict(block) for block in group.blocks[key]],
        }
    return {
        **asdict(group.case),
        "form": group.form.name,
        "threads": threads,
        "bytes_moved": group.bytes_moved,
        "best_copy": copy,
        "update": update,
        "contenders": contenders,
        "left_out": {name: why for (name, on), why in group.left_out.items() if on == threads},
    }


def _quickest(
    group: Group, medians: Mapping[Key, float | None], threads: int, kind: str
) -> dict[str, Any] | None:
    """Return the quickest way of a kind to move the bytes, and what it took."""
    found = [
        (us, name)
        for (name, on), us in medians.items()
        if us is not None and on == threads
        if group.contenders[name, on].ceiling and name.endswith(kind)
    ]
    if not found:
        return None
    us, name = min(found)
    return {"name": name, "us": us}


def markdown(document: Mapping[str, Any]) -> str:
    """Return the whole report: machine, date and command, a table a form, who is left out and why.

    Args:
        document: as written to JSON.
    """
    lines = [
        f"{document['started']}, {document['environment']['device_name']}, "
        f"{document['environment']['affinity']} processors; `{document['command']}`."
    ]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    lines += [f"{versions}.", "", document["note"], "", _LEGEND]
    for name, meaning in document["forms"].items():
        chosen = [row for row in document["rows"] if row["form"] == name]
        if chosen:
            lines += ["", f"**{document['operation']}, {name}**: {meaning}.", ""]
            lines += _table(_cells(chosen, document["ours"], list(document["versions"])))
    lines += ["", *_left_out(document), "", _counts(document["rows"])]
    return "\n".join(lines) + "\n"


def _cells(rows: Sequence[Row], ours: str, libraries: Sequence[str]) -> list[list[str]]:
    """Return a form's table: times of ours, and each library's with its ratio to ours."""
    others = [name for name in libraries if name != ours]
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("dtype", lambda row: row["dtype"]),
        ("shape", lambda row: f"{row['rows']}x{row['width']}"),
        ("threads", lambda row: str(row["threads"])),
        (f"{ours} us", lambda row: _time(row, ours)),
        ("of best copy", lambda row: _share(row, ours)),
        ("gain of threads (copy)", lambda row: _gain(row, ours)),
        *((name, _other(name)) for name in others),
    ]
    return [[title for title, _ in columns], *([show(row) for _, show in columns] for row in rows)]


def _time(row: Row, name: str) -> str:
    entry = row["contenders"].get(name)
    if entry is None:
        return NOTHING
    if entry["us"] is None:
        return f"too few: {entry['kept']} of {entry['taken']}"
    return microseconds(entry["us"])


def _share(row: Row, name: str) -> str:
    entry = row["contenders"].get(name, {})
    copy, update = entry.get("share_of_best_copy"), entry.get("share_of_update")
    shown = NOTHING if copy is None else f"{100 * copy:.0f} %"
    return shown if update is None else f"{shown} (update {100 * update:.0f} %)"


def _gain(row: Row, name: str) -> str:
    if row["threads"] == 1:
        return NOTHING
    best = row["best_copy"]
    shown = [row["contenders"].get(name), best and row["contenders"].get(best["name"])]
    gains = [entry and entry["gain_over_one_thread"] for entry in shown]
    own, copy = (f"{gain['middle']:.2f}" if gain else NOTHING for gain in gains)
    return f"{own} ({copy})"


def _other(name: str) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        over = row["contenders"].get(name, {}).get("over_ours")
        if over is None:
            return _time(row, name)
        interval = f"[{over['low']:.2f}, {over['high']:.2f}]"
        return f"{_time(row, name)} = {over['middle']:.2f} x {interval}"

    return show


def _left_out(document: Mapping[str, Any]) -> list[str]:
    """Return a line for each reason, with the rows it holds for."""
    where: dict[tuple[str, str], list[str]] = {}
    for name, why in document["missing"].items():
        where[name, why] = ["everywhere"]
    for row in document["rows"]:
        for name, why in row["left_out"].items():
            places = where.setdefault((name, why), [])
            place = f"{row['form']} {row['dtype']}"
            if place not in places:
                places.append(place)
    if not where:
        return ["Nobody is left out."]
    return [f"- left out: {name}, {', '.join(at)}: {why}" for (name, why), at in where.items()]


def _counts(rows: Iterable[Row]) -> str:
    """Say how many blocks were taken, and why some do not count."""
    taken, dropped = 0, dict[str, int]()
    for row in rows:
        for entry in row["contenders"].values():
            taken += entry["taken"]
            for why, count in entry["dropped"].items():
                dropped[why] = dropped.get(why, 0) + count
    shown = ", ".join(f"{count} since {why}" for why, count in sorted(dropped.items()))
    return f"{taken} blocks, of which dropped: {shown or 'none'}."


def _table(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table whose columns are aligned, to be read in a terminal too."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
