"""Reports are read whole or refused; two are paired by identity, or not compared for a reason."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import benchmark_documents as made
import pytest

from xllm_kernel.benchmark.past.compare import compare, terminal
from xllm_kernel.benchmark.past.documents import DocumentError, load, parse
from xllm_kernel.benchmark.past.pairing import Pairing, pair, shown
from xllm_kernel.benchmark.statistics import ratios

Change = Callable[[made.Document], Any]


def _changed(change: Change, document: made.Document | None = None) -> made.Document:
    changed = copy.deepcopy(document or made.single())
    change(changed)
    return changed


def _hot(document: made.Document) -> made.Document:
    figures: made.Document = document["rows"][0]["timings"]["regimes"]["hot"]
    return figures


@pytest.mark.parametrize("make", [made.single, made.pair, made.troubled, made.partial])
def test_load_reads_reports_of_every_kind(make: Callable[[], Any], tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(make()), encoding="utf-8")
    past = load(path)
    assert past.name == str(path)
    assert all(len(figure.samples) == 25 for figure in past.figures.values())


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1", b"\xff\xfe", b'{"kind": "benchmark"', b"[" * 100_000]
)
def test_load_of_damaged_json_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=r"broken\.json.*must hold JSON.*give the JSON"):
        load(path)


def test_load_of_no_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"absent\.json.*must be a file"):
        load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(kind="numerics"), "kind 'benchmark', got 'numerics'"),
        (lambda d: d.update(schema_version=1), "schema_version 2, got 1"),
        (lambda d: d.pop("schema_version"), "schema_version 2, got None"),
        (lambda d: d.update(device=3), "'device' must be text"),
        (lambda d: d.update(environment=None), "'environment' must be an object"),
        (lambda d: d.update(rows={}), "'rows' must be a list"),
        (lambda d: d.update(rows=[7]), r"rows\[0\] must be an object"),
        (lambda d: d["rows"][0].pop("case_id"), "'case_id' must be text"),
        (lambda d: d["rows"][0].update(threads="2"), "'threads' must be a number"),
        (lambda d: d["rows"][0].update(parameters=1), "'parameters' must be an object"),
        (lambda d: d["rows"][0].update(timings=[1]), "'timings' must be an object"),
        (lambda d: d["rows"][0].update(timings={}), "'regimes' must be an object"),
        (lambda d: _hot(d).update(unstable=None), "'unstable' must be a list"),
        (lambda d: _hot(d).update(roofline=0.5), "'roofline' must be an object"),
        (lambda d: _hot(d).update(noise_floor={"low": 1}), "low <= middle <= high"),
        (lambda d: _hot(d).update(against={"ratio": {"middle": "x"}}), "low <= middle <= high"),
        (lambda d: _hot(d).pop("wall_us"), "'wall_us' must be an object"),
        (lambda d: _hot(d)["wall_us"].update(samples=[]), "must have samples"),
        (lambda d: _hot(d)["wall_us"].update(samples=[1.0, 0.0]), "above 0, got 0.0"),
        (lambda d: _hot(d)["wall_us"].update(samples=[1.0, -1]), "above 0, got -1"),
        (lambda d: _hot(d)["wall_us"].update(samples=["nan"]), "above 0, got 'nan'"),
        (lambda d: _hot(d)["wall_us"].update(samples=[float("nan")]), "above 0, got nan"),
        (lambda d: _hot(d)["wall_us"].update(samples=[float("inf")]), "above 0, got inf"),
        (lambda d: d["rows"].append(d["rows"][0]), "one figure of each identity"),
    ],
)
def test_parse_of_a_damaged_report_says_what(change: Change, said: str) -> None:
    with pytest.raises(DocumentError, match=f"benchmark report 'x': .*{said}"):
        parse(_changed(change), "x")


def test_partial_report_has_the_figures_of_its_finished_rows() -> None:
    past = parse(made.partial(), "x")
    assert len(past.figures) == 4  # two rows, hot and cold
    assert len(past.without) == 4
    assert "unfinished" in shown(past)


@pytest.mark.parametrize("fields", [{"status": "failed"}, {"evidence": "simulated"}])
def test_row_that_failed_or_stands_for_no_device_has_no_figures(fields: dict[str, str]) -> None:
    past = parse(_changed(lambda d: d["rows"][0].update(fields)), "x")
    assert len(past.figures) == 10


def test_enqueue_regime_counts_the_host_alone() -> None:
    taken = made.figures([9.0] * 6, host_enqueue_us=made.column([2.0] * 6))
    rows = [made.row(regimes={"enqueue": taken, "graph": taken})]
    figures = parse(made.document(rows), "x").figures
    assert {i.regime: f.samples[0] for i, f in figures.items()} == {"enqueue": 2.0, "graph": 9.0}


def _pair(change: Change, document: made.Document | None = None) -> Pairing:
    old = document or made.single()
    return pair(parse(old, "old"), parse(_changed(change, old), "new"))


def _each(key: str, value: Any) -> Change:
    return lambda d: [row.update({key: value}) for row in d["rows"]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(device="npu"), "device: cpu in OLD, npu in NEW"),
        (lambda d: d.update(mode="compile"), "mode: eager in OLD, compile in NEW"),
        (lambda d: d.update(evidence="device"), "evidence: cpu in OLD, device in NEW"),
        (
            lambda d: d["environment"].update(device_name="Sieve 2"),
            "processor: Abacus 9000 in OLD, Sieve 2 in NEW",
        ),
        (lambda d: d["environment"].update(cpus=[0]), "number of processors: 2 in OLD, 1 in NEW"),
        (
            lambda d: d["environment"].update(last_level_cache_bytes=1024),
            "last-level cache: 33554432 in OLD, 1024 in NEW",
        ),
        (
            lambda d: d["ceilings"].update(level="avx2"),
            "SIMD level of the ceilings: avx512bf16 in OLD, avx2 in NEW",
        ),
        (_each("threads", 2), "threads: 1 in OLD, 2 in NEW"),
        (
            _each("implementation", "cpu.torch.affine"),
            "implementation: cpu.simd.affine in OLD, cpu.torch.affine in NEW; .*--baseline OLD",
        ),
        (_each("operation", "other"), "operation: affine in OLD, other in NEW"),
        (_each("parameters", {}), "parameters of affine/"),
        (
            lambda d: [_each("case_id", "x")(d), d.update(rows=d["rows"][:1])],
            "cases: there is none in both",
        ),
        (lambda d: d.update(rows=[]), "figures: there are none in NEW"),
        (lambda d: _hot(d).update(calls_a_replay=64), "calls a replay of affine/.*: 1 in OLD, 64"),
        (lambda d: _hot(d).update(reset_before="every call"), "reset of affine/"),
    ],
)
def test_pair_of_what_must_agree_and_does_not_names_it(change: Change, reason: str) -> None:
    reasons = _pair(change).reasons
    assert any(re.match(reason, said) for said in reasons), reasons


def test_pair_of_two_dtypes_names_the_dtype() -> None:
    old, new = (
        made.document([made.row(dtype=dtype, regimes={"hot": made.figures([1.0] * 9)})])
        for dtype in ("bfloat16", "float16")
    )
    assert pair(parse(old, "old"), parse(new, "new")).reasons == [
        "dtype: bfloat16 in OLD, float16 in NEW"
    ]


def test_pair_of_two_regimes_names_the_regime() -> None:
    def cold(document: made.Document) -> None:
        for row in document["rows"]:
            row["timings"]["regimes"].pop("hot")

    old = _changed(lambda d: [r["timings"]["regimes"].pop("cold") for r in d["rows"]])
    pairing = pair(parse(old, "old"), parse(_changed(cold), "new"))
    assert pairing.reasons == ["regime: hot in OLD, cold in NEW"]


def test_pair_of_two_simd_levels_names_them() -> None:
    def built(level: str) -> Change:
        return lambda d: d["receipt"].update(build=[f"SIMD level {level} of scalar, avx2", "sha"])

    old = _changed(built("avx2"))
    assert _pair(built("scalar"), old).reasons == ["SIMD level: avx2 in OLD, scalar in NEW"]

    def baselines(level: str) -> Change:
        receipt = {"build": [f"SIMD level {level} of scalar, avx2"]}
        return lambda d: d.update(other_receipts={"cpu.simd.affine": receipt})

    old = _changed(baselines("avx2"))
    assert _pair(baselines("scalar"), old).reasons == ["SIMD level: avx2 in OLD, scalar in NEW"]


def test_pair_of_threads_that_rows_do_not_state_reads_the_environment() -> None:
    old = _changed(lambda d: [_each("threads", None)(d), d["environment"].update(threads=1)])
    reasons = _pair(lambda d: d["environment"].update(threads=2), old).reasons
    assert reasons == ["threads: 1 in OLD, 2 in NEW"]


@pytest.mark.parametrize("side", ["old", "new", "both"])
def test_pair_with_a_simulated_report_is_always_refused(side: str) -> None:
    simulated, honest = parse(made.simulated(), "s"), parse(made.single(), "h")
    old, new = (simulated if side in (name, "both") else honest for name in ("old", "new"))
    pairing = pair(old, new)
    assert pairing.pairs == []
    assert all("no evidence of accuracy or performance" in reason for reason in pairing.reasons)
    assert len(pairing.reasons) == (2 if side == "both" else 1)


def test_pair_of_what_one_compares_is_comparable_and_shown() -> None:
    def later(document: made.Document) -> None:
        document.update(revision="ffff", started="2026-02-01T00:00:00+00:00", duration_s=1.0)
        document["environment"].update(torch="2.14.0", load_average=[3.0])
        document["receipt"].update(plan_hash="2d" * 32, build=["library sha256 77"])

    old = made.single()
    new = parse(_changed(later, old), "new")
    assert pair(parse(old, "old"), new).reasons == []
    facts = shown(new)
    assert facts["revision"] == "ffff"
    assert facts["plan"] == "2d2d2d2d2d2d"
    assert facts["load_average"] == "[3.0]"
    assert "built: library sha256 77" in facts


def test_pair_lists_what_is_in_one_report_alone_and_why_rows_were_lost() -> None:
    def fail(document: made.Document) -> None:
        rows = document["rows"]
        rows[0].update(status="failed", reason="wrong", timings=None)
        rows[1].update(case_id="another")

    pairing = _pair(fail)
    assert pairing.reasons == []
    assert [i.case_id[:20] for i in pairing.only_old] == ["affine/bfloat16/1x51"] * 2 + [
        "affine/bfloat16/1x20"
    ] * 2
    assert [i.case_id for i in pairing.only_new] == ["another"] * 2
    assert pairing.lost == ["affine/bfloat16/1x512/seed5309, cpu.simd.affine on 1 threads: wrong"]


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the way to everything in a document, of lists the first."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, inner in inside:
        yield (*place, key)
        if isinstance(inner, (dict, list)):
            yield from _places(inner, (*place, key))


ABSURD = (None, [], [0], "x", 0, -1, float("nan"), 10**400, {"a": 1}, True)


def test_no_damage_to_a_report_gets_past_reading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does must not stop a comparison: a crash of it would look like a regression."""
    monkeypatch.setattr(ratios, "_DRAWS", 20)
    honest = made.pair()
    honest["rows"] = honest["rows"][:2]
    honest["other_receipts"] = {honest["baseline"]: copy.deepcopy(honest["receipt"])}
    old, refused, read = parse(honest, "old"), 0, 0
    text = json.dumps(honest)
    for place in _places(honest):
        for value in (*ABSURD, KeyError):
            damaged = json.loads(text)
            inner = damaged
            for key in place[:-1]:
                inner = inner[key]
            if value is KeyError:
                del inner[place[-1]]
            else:
                inner[place[-1]] = value
            try:
                new = parse(damaged, "new")
            except DocumentError:
                refused += 1
                continue
            read += 1
            for one in (compare(old, new), compare(new, old)):
                assert json.dumps(one.as_dict(), allow_nan=False)
                assert terminal(one, 80)
    assert refused > 300
    assert read > 1000


def _impossible(document: made.Document) -> None:
    _hot(document)["roofline"].update(impossible=True, share=4.0)


def test_an_impossible_figure_is_none_and_no_baseline_either() -> None:
    honest = made.pair()
    candidate, baseline = (
        honest["rows"][0],
        next(row for row in honest["rows"] if row["implementation"] == honest["baseline"]),
    )
    assert candidate["case_id"] == baseline["case_id"]
    old = parse(honest, "old")

    new = parse(_changed(_impossible, honest), "new")
    (gone,) = old.figures.keys() - new.figures.keys()
    assert (gone.implementation, gone.case_id) == (
        candidate["implementation"],
        candidate["case_id"],
    )
    assert any("faster than the machine allows" in why for why in pair(old, new).lost)
    assert compare(old, new).exit_code == 5

    changed = copy.deepcopy(honest)
    spoiled = changed["rows"][honest["rows"].index(baseline)]
    spoiled["timings"]["regimes"]["hot"]["roofline"].update(impossible=True)
    new = parse(changed, "new")
    assert old.figures[gone].against["baseline"] == honest["baseline"]
    assert not new.figures[gone].against
    others = [one for identity, one in new.figures.items() if identity.case_id != gone.case_id]
    assert sum(bool(one.against) for one in others) == len(others) // 2


def test_an_impossible_figure_twice_is_refused_as_any_other() -> None:
    document = _changed(_impossible)
    document["rows"].append(made.single()["rows"][0])
    with pytest.raises(DocumentError, match="one figure of each identity"):
        parse(document, "twice")
