"""The loop: ask the strategy, have a crew run the mutants, tell the strategy; now and then, look.

A generation is a handful of mutants: all are asked for, run and judged by one crew, then the
strategy is told of them in order. It is stored in one transaction, together with all turns of the
strategy so far, of whichever generation: what was asked for and not told yet is given out again by
whoever goes on. What is odd waits in a docket.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from outvote.campaign.ancestry import Ancestry
from outvote.campaign.crews import Brood, Crews, Deadly, OneCrew
from outvote.campaign.diary import Diary
from outvote.campaign.docket import Docket, OddCase
from outvote.campaign.job import FuzzJob
from outvote.campaign.keeper import Keeper
from outvote.campaign.lines import Lines, yielded
from outvote.campaign.novelty import Waiting
from outvote.campaign.numbers import Numbers
from outvote.campaign.orders import Look, Make, OfBirths, Order, Settle, TryOut
from outvote.campaign.progress import Onlooker, Progress
from outvote.campaign.report import Opening, Report, ToldFinding
from outvote.campaign.rules import rules_of
from outvote.campaign.sift import Sifter
from outvote.campaign.totals import Totals
from outvote.core.errors import UsageError
from outvote.mutate.dealt import dealing_seed
from outvote.mutate.registry import all_rules, deals
from outvote.run.pool import Pool
from outvote.search.strategy import Choice, Experience, Offspring
from outvote.store import facts
from outvote.store.rows import ASKED, LOOKED, VAIN, Birth, Turn
from outvote.store.store import Row, Store
from outvote.store.strongest import Strongest

B = TypeVar("B", bound=OfBirths)
_TRIES = 2000  # rules that do not apply, one after the other, before we give up
_CANARY = 50  # mutants between two runs of the seed that measure time and memory


def run_campaign(
    job: FuzzJob,
    pool: Pool,
    store: Store,
    out: Path,
    onlooker: Onlooker = lambda progress: None,
) -> bool:
    """Begin a campaign here or go on with it; False when the user stopped it."""
    with closing(OneCrew(job, pool, out, store.tell)) as crews:
        return Campaign(job, store, crews).run(onlooker)


@dataclass(frozen=True)
class AskedBirth:
    """A choice of the strategy, and the birth that was made of it."""

    choice: Choice
    birth: Birth

    def turn(self, what: str, told: tuple[Any, ...] = ()) -> Turn:
        return Turn(what, self.birth, self.choice.by, told)


class Campaign:
    """A campaign that has begun; it stands where its store stands."""

    def __init__(
        self, job: FuzzJob, store: Store, crews: Crews, record: Sequence[Turn] = ()
    ) -> None:
        """`record`: the turns of another campaign's strategy, to be gone through again."""
        self._job, self._store, self._crews = job, store, crews
        self._rules = all_rules(job.dialect)
        self._scripts = [self._recorded(record)] if record else None
        self._totals = Totals(store)
        self._keeper = Keeper(store, lambda: self._totals.seconds)
        self._docket = Docket(store, self._keeper, self._totals, job.confirm > 0)
        self._lines = Lines(store)
        self._last = 0  # number of those that are stored
        self._under_way = 0  # mutants that crews were asked for
        self._as_told: dict[int, Offspring] = {}  # where a record says what the strategy was told
        begun = store.fact(facts.STATE) is not None
        opening = crews.open(begun, self._keeper.known)
        self._kinds = opening.kinds
        self._note_opening(opening)
        if not begun:
            self._begin(opening)
        numbers, unanswered = store.numbers(), store.unanswered()
        self._diary = Diary(store, job.strategy)
        self._strongest = Strongest.restored(store.fact(facts.STRONGEST))
        self._accs = {row.number: row.acc or 0.0 for row in store.rows(seeds_alone=True)}
        self._numbers = Numbers(numbers + [turn.birth.number for turn in unanswered])
        self._last = numbers[-1]
        self._again = deque(_asked_in(turn) for turn in unanswered)
        waited = map(store.birth, store.fact(facts.WAITING))
        self._waited = [birth for birth in waited if birth is not None]
        self._docket.expect(birth.number for birth in self._waited)
        self._ancestry = Ancestry(store)
        # In bulk there is no strategy to tell: the dialect draws all cases.
        self._sifter = Sifter(crews, store, self._totals, self._keeper) if job.in_bulk else None
        self._watch: Callable[[], None] = lambda: None
        self._totals.started()

    def run(self, onlooker: Onlooker = lambda progress: None) -> bool:
        """Go on until the budget is spent; False when the user stopped it."""
        self._watch = lambda: self._show(onlooker)
        try:
            self._watch()
            while self._goes_on_with_one():
                self._watch()
            self._finish()
            self._keep_told(self._crews.drifts(self._store.samples()))
            self._confirm()
        except KeyboardInterrupt:
            self._store.note(facts.INTERRUPTED, True)
            self._diary.close()
            self._keep_told(self._crews.growths(self._store.samples()))
            return False
        self._diary.close()
        self._store.note(facts.INTERRUPTED, False)
        self._totals.note(self._crews.standing)
        return True

    def _goes_on_with_one(self) -> bool:
        """Until a brood has ended; all of that time but looks was for new cases."""
        began, looks = self._totals.seconds, self._docket.looks
        more = self._crews.finish_one(self._brood)
        seconds = (self._totals.seconds - began) * self._crews.side_by_side
        self._docket.searches += max(0.0, seconds - (self._docket.looks - looks))
        return more

    def _note_opening(self, opening: Opening) -> None:
        self._store.note(facts.HELLOS, dict(opening.heads))
        self._store.note(facts.DRAWABLE, list(opening.kinds))
        self._store.note(facts.NOT_COVERED, dict(opening.not_covered))

    def _begin(self, opening: Opening) -> None:
        """The seeds themselves: what they show is not the mutants' merit."""
        strongest, accs = Strongest(), {}
        for report in opening.initial:
            accs[report.row.number] = report.row.acc or 0.0
            strongest.add(report.row.number, report.mad, first=True)
        state = Experience.new(accs, rules_of(self._job), self._job.seed).state()
        with self._store.transaction():
            for report in opening.initial:
                new = self._lines.new_in(report.lines)
                self._add(replace(report, lines=new), joined=True)
            self._store.note(facts.STATE, state)
            self._store.note(facts.STATE_TURN, 0)
            self._note(strongest)

    def _goes_on(self) -> bool:
        """Whether there is more to do, after the pause that somebody may have asked for."""
        self._totals.rest()
        return self._share() < 1.0

    def _brood(self) -> Brood | None:
        """The next generation; None where what is under way spends the budget."""
        if self._scripts is not None:
            return self._scripts.pop() if self._scripts else None
        if self._waited:
            return self._recalled()
        if not self._goes_on():
            return None
        if self._sifter is not None:
            return self._sifter.brood(self._goes_on, self._watch)
        size = self._job.generation
        if self._job.budget.mutants is not None:
            left = self._job.budget.mutants - self._totals.tested - self._under_way
            size = min(size, left)
        if size <= 0:
            return None
        self._under_way += size
        return self._generation(size)

    def _recalled(self) -> Brood:
        """What waited for a look when an earlier sitting ended is made and run again."""
        size = self._job.generation
        some, self._waited = self._waited[:size], self._waited[size:]
        reports: list[Report | None] = [None] * len(some)
        with suppress(Deadly):
            reports = yield self._of_births(TryOut, some)
        with self._store.transaction():
            for birth, report in zip(some, reports, strict=True):
                self._recall(birth, report)
            self._docket.note()
        with suppress(Deadly):
            yield Settle((), self._docket.numbers, None)

    def _recall(self, birth: Birth, report: Report | None) -> None:
        if report is not None and report.odd is not None:
            self._docket.add_again(OddCase(report.odd, birth, beside=report.beside))
        else:
            self._docket.show_again(birth.number, report.again if report else frozenset())

    def _generation(self, size: int) -> Brood:
        bred: list[AskedBirth] = []
        tries = 0
        while len(bred) < size:
            asked = [self._ask() for _ in range(min(self._crews.width or size, size - len(bred)))]
            try:
                made = yield self._of_births(Make, [one.birth for one in asked])
            except Deadly:
                made = [False] * len(asked)
            for one, can_be in zip(asked, made, strict=True):
                if can_be:
                    bred.append(one)
                else:
                    self._tell_vain(one)
                tries = 0 if can_be else tries + 1
            if tries > _TRIES:
                raise UsageError(
                    f"none of the rules {', '.join(rules_of(self._job))} applies to the seeds; "
                    "name others with --rules"
                )
        joined = self._keep(bred, (yield from self._attempted(bred)))
        self._under_way -= size
        yield from self._settle(joined, size)
        while self._docket.is_due and (odd := self._docket.next()) is not None:
            yield from self._look(odd)

    def _attempted(self, bred: Sequence[AskedBirth]) -> Generator[Order, Any, list[Report]]:
        births = [one.birth for one in bred]
        why = "another crew made it, and it cannot be made again"
        try:
            reports = yield self._of_births(TryOut, births)
        except Deadly as deadly:
            reports, why = [None] * len(births), str(deadly)
        pairs = zip(births, reports, strict=True)
        return [report or self._lost(birth, why) for birth, report in pairs]

    def _look(self, one: Waiting[OddCase]) -> Brood:
        """Look into a mutant that waited."""
        began, report = time.monotonic(), None
        with suppress(Deadly):
            (report,) = yield self._of_births(Look, [one.case.birth])
        self._docket.looks += report.looking if report else time.monotonic() - began
        self._diary.add(LOOKED, one.case.birth)
        with self._store.transaction():
            self._docket.looked(one, report)
            self._diary.note()
            self._note(self._strongest)

    def _finish(self) -> None:
        """The budget is spent: look into what waits; all of it, where no time was set."""
        ended, timed = time.monotonic(), self._job.budget.seconds is not None

        def more() -> Brood | None:
            if timed and self._docket.is_over:
                return None
            one = self._docket.next()
            return None if one is None else self._look(one)

        while self._crews.finish_one(more):
            self._watch()
        self._totals.looking_after += time.monotonic() - ended
        with self._store.transaction():
            self._totals.note(self._crews.standing)

    def _settle(self, joined: list[int], size: int) -> Brood:
        """The crew need not keep a generation that is stored; now and then it measures."""
        count = self._totals.tested
        due = count // _CANARY != (count - size) // _CANARY
        with suppress(Deadly):
            waiting, sampled = self._docket.numbers, self._last if due else None
            for sample in (yield Settle(joined, waiting, sampled)):
                self._store.sample(sample)

    def _recorded(self, record: Sequence[Turn]) -> Brood:
        """What a strategy was asked and told, by however many crews, once more in that order."""
        waiting: dict[int, AskedBirth] = {}
        for what, turns in groupby(record, key=lambda turn: turn.what):
            if what == ASKED:
                waiting |= {turn.birth.number: self._ask_as(turn) for turn in turns}
                continue
            if what == LOOKED:
                for number in [turn.birth.number for turn in turns]:
                    odd = self._docket.next(number)
                    if odd is not None:
                        yield from self._look(odd)
                continue
            done = list(turns)
            self._as_told |= {
                turn.birth.number: Offspring(*turn.told) for turn in done if turn.told
            }
            bred = [waiting.pop(turn.birth.number) for turn in done]
            if what == VAIN:
                for one in bred:
                    self._tell_vain(one)
                continue
            reports = yield from self._attempted(bred)
            yield from self._settle(self._keep(bred, reports), len(bred))

    def _ask_as(self, turn: Turn) -> AskedBirth:
        """Ask the strategy; it has to want what is recorded: it was told the same so far."""
        asked = self._ask()
        if asked.turn(ASKED) != turn:
            raise UsageError(
                f"the record wants mutant {turn.birth.number} by {turn.birth.rule} of "
                f"{turn.birth.parent}, and here it is {asked.birth.number} by {asked.birth.rule} "
                f"of {asked.birth.parent}: seeds give other results, or it was another version"
            )
        return asked

    def _lost(self, birth: Birth, why: str) -> Report:
        """A mutant of which nothing is known but that no crew outlived it."""
        root = self._store.root_of(birth.parent)
        origin = (birth.number, birth.parent, root, birth.rule, birth.seed)
        row = Row(*origin, "invalid", None, False, 0, 0.0, 0.0, why)
        return Report(row, {}, repeatable=False)

    def _of_births(self, kind: type[B], births: Sequence[Birth]) -> B:
        """An order, with all ancestors that are no seeds."""
        return kind(tuple(births), self._ancestry.of(births))

    def _ask(self) -> AskedBirth:
        """What was asked for and never told, first; then what the strategy wants."""
        if self._again:
            return self._again.popleft()
        choice, count = self._diary.ask()
        rule = self._rules.get(choice.rule)  # None: a search beside mutants
        seed = dealing_seed(self._job.seed, count) if rule and deals(rule) else self._job.seed
        birth = Birth(self._numbers.take(), choice.parent, choice.rule, seed)
        self._diary.asked(choice, birth)
        return AskedBirth(choice, birth)

    def _tell_vain(self, asked: AskedBirth) -> None:
        """Its rule does not apply: the number is free again."""
        self._diary.strategy.tell(asked.choice, Offspring(None))
        self._diary.add(VAIN, asked.birth, asked.choice.by)
        self._numbers.give_back(asked.birth.number)

    def _keep(self, bred: Sequence[AskedBirth], reports: Sequence[Report]) -> list[int]:
        """Tell the strategy of a generation and store it; the numbers of those that may breed."""
        told = [self._tell(*both) for both in zip(bred, reports, strict=True)]
        joined = [report.row.number for report, joins in told if joins]
        with self._store.transaction():
            for report, joins in told:
                self._add(report, joins)
            self._diary.note()
            self._note(self._strongest)
        return joined

    def _tell(self, asked: AskedBirth, report: Report) -> tuple[Report, bool]:
        """Tell the strategy of one mutant, and count it; True when it may breed.

        What is odd goes to the docket, which may know it by what it looks like.
        """
        report = replace(report, lines=self._lines.new_in(report.lines))
        row, is_new = report.row, False
        if report.odd is not None:
            odd = OddCase(report.odd, asked.birth, report.repeatable, report.beside)
            taken = self._docket.add(odd)
            report, is_new = report.showing(taken.again), taken.is_new
        offspring = self._as_told.pop(row.number, None) or self._offspring(report, is_new)
        joined = self._diary.strategy.tell(asked.choice, offspring)
        self._diary.told(asked.choice, asked.birth, offspring)
        if report.mad:
            self._strongest.add(row.root, report.mad, first=False)
        self._totals.count(report, self._accs[row.root])
        return report, joined

    def _offspring(self, report: Report, is_new: bool) -> Offspring:
        """What a strategy is told at once: of findings, that something looks like no other."""
        known = bool(report.findings or report.again or report.is_new_odd)
        can_be_a_parent = report.repeatable and (self._job.breed_known or not known)
        return Offspring(
            report.row.number if report.valid else None,
            report.row.acc if report.valid else None,
            can_be_a_parent and report.counts,
            len(report.fingerprints - self._keeper.known) + is_new,
            report.cost,
            yielded(report.lines),
            can_be_a_parent and not report.counts,
        )

    def _add(self, report: Report, joined: bool) -> None:
        row = replace(report.row, joined=joined, at=self._totals.seconds)
        self._store.add(row)
        self._keeper.keep(row.number, report.findings, report.again)
        self._lines.keep(row.number, row.at, report.lines)
        self._last = max(self._last, row.number)

    def _note(self, strongest: Strongest) -> None:
        """Where the campaign stands, in the transaction that is open."""
        self._docket.note()
        self._store.note(facts.STRONGEST, strongest.state())
        self._totals.note(self._crews.standing)

    def _confirm(self) -> None:
        """Every finding that is not confirmed yet again, in fresh workers.

        Where time is the budget, as many as it leaves: the next sitting goes on with the others.
        """
        began, seconds = self._totals.seconds, None
        if self._job.budget.seconds is not None and self._sifter is None:
            seconds = self._docket.left / self._crews.side_by_side
        if self._job.confirm:
            self._find_again(seconds)
            if seconds is not None:
                seconds = max(0.0, seconds - (self._totals.seconds - began))
            for told in self._crews.confirm(self._job.confirm, seconds):
                self._keeper.retell(told)
        took = self._totals.seconds - began
        self._totals.confirming += took
        if self._sifter is not None:
            self._sifter.confirming(took)

    def _find_again(self, seconds: float | None) -> None:
        """What no crew has at hand, because who found it is gone, is met by another first.

        No look begins once half of the time is over; one may, in any case.
        """
        began = self._totals.seconds
        at_hand = self._crews.at_hand
        lost = [
            seen
            for seen in self._store.findings()
            if (seen.data.get("evidence") or {"shown_again": 0})["shown_again"] is None
            and seen.fingerprint not in at_hand
        ]

        def look(birth: Birth) -> Brood:
            with suppress(Deadly):
                yield self._of_births(Look, [birth])

        if self._sifter is not None:
            looks = self._sifter.find_again({seen.fingerprint for seen in lost})
        else:
            births = [self._store.birth(seen.first) for seen in lost]
            looks = [look(birth) for birth in births if birth is not None]

        def next_look() -> Brood | None:
            late = seconds is not None and self._totals.seconds - began > seconds / 2
            return looks.pop() if looks and not late else None

        while self._crews.finish_one(next_look):
            pass

    def _keep_told(self, found: Collection[ToldFinding]) -> None:
        """What was found when all mutants had been run."""
        for told in found:
            with self._store.transaction():
                self._keeper.keep(self._last, [told])

    def _share(self) -> float:
        """Of the budget, that is spent."""
        covered = self._covered() / max(1, len(self._kinds))
        return self._job.budget.spent(self._totals.tested, self._totals.seconds, covered)

    def _covered(self) -> int:
        """Kinds of layers that could be drawn and were run."""
        return sum(kind in self._totals.kinds for kind in self._kinds)

    def _show(self, onlooker: Onlooker) -> None:
        """Who watches may run scripts that were found, as long as they take."""
        with self._totals.aside():
            onlooker(self._progress())

    def _progress(self) -> Progress:
        totals, keeper = self._totals, self._keeper
        tallies = self._diary.memory.tallies
        return Progress(
            totals.tested,
            totals.valid,
            totals.rounding,
            totals.seconds,
            len(keeper.known),
            totals.best,
            {name: (tally.used, tally.succeeded) for name, tally in tallies.items()},
            self._share(),
            keeper.last,
            self._covered(),
            len(totals.values),
        )


def _asked_in(turn: Turn) -> AskedBirth:
    return AskedBirth(Choice(turn.birth.parent, turn.birth.rule, turn.by), turn.birth)
