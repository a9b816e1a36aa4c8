"""A stored campaign as the dict that result.json holds (docs/result-json.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from outvote.core.result import head
from outvote.store import facts
from outvote.store.counts import audee_counts, lemon_counts
from outvote.store.store import Row, Seen, Store
from outvote.store.strongest import Strongest

_BINS = 60  # of the throughput over time


def fuzz_result(store: Store) -> dict[str, Any]:
    """Everything that reports show, from the store alone."""
    rows = store.rows()
    mutants = [row for row in rows if row.rule is not None]
    sieve = store.fact(facts.SIFTED) or None
    tested = sieve["tested"] if sieve else len(mutants)
    job, seconds = store.fact(facts.JOB), store.fact(facts.SECONDS)
    invalid = [row for row in mutants if row.outcome == "invalid"]
    findings = [_finding(seen, rows) for seen in store.findings()]
    real = [f for f in findings if f["triage"] != "precision"]
    interrupted = store.fact(facts.INTERRUPTED)
    return {
        **head(
            "fuzz",
            _targets(store),
            None,
            created=store.fact(facts.CREATED),
            seconds=seconds,
            verdict="inconsistent" if real else "interrupted" if interrupted else "consistent",
            summary=_summary(
                tested, findings, _split(store, sieve), "graphs" if sieve else "mutants"
            ),
            interrupted=interrupted,
            warnings=[
                *([] if sieve else _warnings(mutants, invalid)),
                *store.fact(facts.LEFT_OUT),
            ],
            findings=findings,
        ),
        "strategy": job["strategy"],
        "settings": job,
        "seeds": [_seed(row, findings) for row in rows if row.rule is None],
        "tested": tested,
        "valid": sieve["valid"] if sieve else tested - len(invalid),
        "invalid": tested - sieve["valid"] if sieve else len(invalid),
        "invalid_examples": [
            {"mutant": row.number, "rule": row.rule, "new": row.new, "message": row.message}
            for row in invalid[:20]
        ],
        "rounding": store.fact(facts.ROUNDING),
        "flaky": store.fact(facts.FLAKY),
        "rules": _rules(store, mutants, findings),
        "amplification": _amplification(store, rows, job["mad_threshold"]),
        "kinds": _kinds(store),
        "values": _values(store),
        "lines": _lines(store),
        "accepted_everywhere": store.fact(facts.ACCEPTED),
        "arms": _arms(store),
        "throughput": _sifted_over_time(store) if sieve else _throughput(mutants, seconds),
        "sieve": sieve,
        "time": _time(store),
        "waiting": store.fact(facts.WAITING_KINDS),
        "samples": [list(vars(sample).values()) for sample in store.samples()],
        "bugs": _bugs(findings, len(rows) - len(mutants), store.fact(facts.STARTING)),
        "counts": {
            "lemon": lemon_counts(
                findings, {row.number: row for row in rows}, tested, _breeding(store)
            ),
            "audee": audee_counts(rows),
        },
        "comparison": None,
    }


def _breeding(store: Store) -> float:
    """Seconds spent on mutants: without starting frameworks and reading seeds."""
    return max(0.0, store.fact(facts.SECONDS) - store.fact(facts.STARTING))


def _summary(
    tested: int, findings: Sequence[dict[str, Any]], split: Mapping[str, Any], cases: str
) -> str:
    """How many cases, how quickly, what was found, where the time went, and what waits.

    `split` has the seconds of each part of the time; those after the end are of `looking` too.
    """
    parts = {
        f"ran new {cases}": split["searching"],
        "looked into differences": split["looking"],
        "confirmed findings": split["confirming"],
    }
    total = sum(parts.values()) or 1.0
    seconds = split["searching"] + split["looking"] - split["after"]
    rate = tested / seconds * 60 if seconds > 0 else 0.0
    real = [f for f in findings if f["triage"] != "precision"]
    found = f"{len(real)} finding{'s' * (len(real) != 1)}" if real else "nothing found"
    head = f"{tested} {cases} at {rate:.0f} a minute, {found}."
    if not (split["looking"] or split["waiting"]):
        return head
    told = ", ".join(f"{spent / total:.0%} {what}" for what, spent in parts.items())
    return f"{head} Of the time {told}; {split['waiting']} kinds of differences wait."


def _split(store: Store, sieve: Mapping[str, Any] | None) -> dict[str, Any]:
    """Where the time went: a campaign in bulk has clocks of its own."""
    if sieve:
        together = sieve["sifting"] + sieve["looking"]  # seconds of all crews
        lasted = max(0.0, _breeding(store) - sieve["confirming"])
        side_by_side = max(1.0, together / lasted) if lasted else 1.0
        parts = {"searching": sieve["sifting"], "looking": sieve["looking"]}
        shared = {name: seconds / side_by_side for name, seconds in parts.items()}
        return {**sieve, **shared, "after": 0.0}
    return {**_time(store), "after": store.fact(facts.LOOKING_AFTER)}


def _warnings(mutants: Sequence[Row], invalid: Sequence[Row]) -> list[str]:
    if not mutants:
        return ["no mutant was run"]
    share = len(invalid) / len(mutants)
    if share > 0.01:
        return [f"{share:.1%} of the mutants could not be run by any target"]
    return []


def _finding(seen: Seen, rows: Sequence[Row]) -> dict[str, Any]:
    by_number = {row.number: row for row in rows}
    return {
        **seen.data,
        "count": seen.count,
        "first": seen.first,
        "last": seen.last,
        "first_at": round(seen.first_at, 3),
        "last_at": round(seen.last_at, 3),
        "found_by": "mutant" if by_number[seen.first].rule else "seed",
        "lineage": lineage(seen.first, by_number),
    }


def lineage(number: int, rows: dict[int, Row]) -> list[dict[str, Any]]:
    """From the seed to a mutant: each step with its rule and what it put in."""
    chain: list[dict[str, Any]] = []
    row: Row | None = rows[number]
    while row is not None:
        chain.append({"mutant": row.number, "rule": row.rule, "new": row.new, "acc": row.acc})
        row = rows.get(row.parent) if row.parent is not None else None
    return chain[::-1]


def _seed(row: Row, findings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    own = [f for f in findings if f["lineage"][0]["mutant"] == row.number]
    return {
        "number": row.number,
        "name": row.new,
        "layers": row.layers,
        "acc": row.acc,
        "findings": len(own),
        "by_mutants": sum(f["found_by"] == "mutant" for f in own),
    }


def _targets(store: Store) -> list[dict[str, Any]]:
    heads, busy = store.fact(facts.HELLOS), store.fact(facts.BUSY)
    restarts, peaks = store.fact(facts.RESTARTS), store.fact(facts.PEAKS)
    return [
        {
            **heads[name],
            "seconds": busy.get(name, 0.0),
            "restarts": restarts.get(name, 0),
            "peak_memory": peaks.get(name, 0),
        }
        for name in store.fact(facts.JOB)["targets"]
    ]


def _rules(
    store: Store, mutants: Sequence[Row], findings: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    by_number = {row.number: row for row in mutants}
    found = Counter(by_number[f["first"]].rule for f in findings if f["first"] in by_number)
    used = Counter(row.rule for row in mutants)
    valid = Counter(row.rule for row in mutants if row.outcome != "invalid")
    joined = Counter(row.rule for row in mutants if row.joined)
    tallies = store.fact(facts.STATE)["tallies"]
    return [
        {
            "rule": name,
            "tested": used[name],
            "valid": valid[name],
            "amplified": succeeded,
            "joined": joined[name],
            "findings": found[name],
        }
        for name, (_, succeeded) in tallies.items()
    ]


def _amplification(store: Store, rows: Sequence[Row], threshold: float) -> list[dict[str, Any]]:
    names = {row.number: row.new for row in rows if row.rule is None}
    table = Strongest.restored(store.fact(facts.STRONGEST)).table(threshold)
    return [{"seed": names[entry.pop("root")], **entry} for entry in table]


def _kinds(store: Store) -> dict[str, Any]:
    drawn, drawable = store.fact(facts.KINDS), store.fact(facts.DRAWABLE)
    return {
        "drawn": dict(sorted(drawn.items(), key=lambda item: -item[1])),
        "drawable": len(drawable),
        "exercised": sum(kind in drawn for kind in drawable),
        "not_covered": store.fact(facts.NOT_COVERED),
    }


def _values(store: Store) -> dict[str, Any]:
    """Classes of parameter values that layers of mutants held: `Conv2D strides even`."""
    counts = store.fact(facts.VALUES)
    return {
        "exercised": len(counts),
        "parameters": len({text.rpartition(" ")[0] for text in counts}),
        "counts": counts,
    }


def _lines(store: Store) -> dict[str, dict[str, int]]:
    """Lines of the targets' own Python that the campaign has reached, of how many."""
    reached: Counter[str] = Counter()
    for row in store.reached():
        reached[row.target] += row.count
    totals = store.fact(facts.LINES)
    return {name: {"reached": reached[name], "of": of} for name, of in totals.items()}


def _arms(store: Store) -> list[dict[str, Any]]:
    """What each strategy of a mixed campaign cost and found."""
    return [
        {"strategy": name, "requests": used, "found": found}
        for name, (used, found) in store.fact(facts.STATE).get("arms", {}).items()
    ]


def _sifted_over_time(store: Store) -> list[list[float]]:
    """Cases per minute between the times that were noted."""
    points = [[0.0, 0.0], *store.fact(facts.SIFTED_OVER_TIME)]
    pairs = pairwise(points)
    return [[b[0], round(60 * (b[1] - a[1]) / (b[0] - a[0]), 1)] for a, b in pairs if b[0] > a[0]]


def _throughput(mutants: Sequence[Row], seconds: float) -> list[list[float]]:
    """Mutants per minute over the campaign: [second, rate] of equal slices of time."""
    if not mutants or seconds <= 0:
        return []
    width = seconds / _BINS
    counts = Counter(min(_BINS - 1, int(row.at / width)) for row in mutants)
    return [[round((i + 1) * width, 2), round(counts[i] / width * 60, 1)] for i in range(_BINS)]


def _time(store: Store) -> dict[str, Any]:
    looking, confirming = store.fact(facts.LOOKING), store.fact(facts.CONFIRMING)
    return {
        "total": store.fact(facts.SECONDS),
        "starting": store.fact(facts.STARTING),
        "breeding": _breeding(store),
        "searching": max(0.0, _breeding(store) - looking - confirming),
        "making": store.fact(facts.MAKING),
        "looking": looking,
        "confirming": confirming,
        "looks": store.fact(facts.LOOKS),
        "refused_draws": store.fact(facts.REFUSED_DRAWS),
        "recycled": store.fact(facts.RECYCLED),
        "waiting": len(store.fact(facts.WAITING)),
    }


def _bugs(findings: Sequence[dict[str, Any]], seeds: int, starting: float) -> list[dict[str, Any]]:
    """Per target and kind: how many, who found them, and what each cost (LEMON, section 5.1)."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for finding in findings:
        if finding["triage"] != "precision":
            who = finding["accused"] or "undecided"
            grouped.setdefault((who, finding["kind"]), []).append(finding)
    rows = []
    for (who, kind), group in sorted(grouped.items()):
        bred = [f for f in group if f["found_by"] == "mutant"]
        rows.append(
            {
                "target": who,
                "kind": kind,
                "by_mutants": len(bred),
                "by_seeds": len(group) - len(bred),
                "initial_only": sum(f["last"] <= seeds for f in group),  # numbers of seeds
                "mutants": fmean(f["first"] - seeds for f in bred) if bred else None,
                "seconds": fmean(f["first_at"] - starting for f in bred) if bred else None,
            }
        )
    return rows
