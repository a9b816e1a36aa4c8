"""Findings of a campaign, kept: a folder with the proof, and a row in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outvote.campaign.investigate import Conclusion
from outvote.core.model import Model
from outvote.core.protocol import Hello
from outvote.core.target import Run, Target
from outvote.findings.evidence import write_finding
from outvote.findings.finding import Finding
from outvote.findings.result import finding_result
from outvote.run.pool import Pool
from outvote.store.store import Store


@dataclass
class Keeper:
    """Stores findings; a new one gets its folder first, so that none is named without proof."""

    pool: Pool
    store: Store
    out: Path
    targets: Mapping[str, Target]
    hellos: Mapping[str, Run[Hello]]
    seconds: Callable[[], float]  # of the campaign, so far
    known: set[str] = field(init=False)  # fingerprints
    last: str = ""  # title of the newest finding

    def __post_init__(self) -> None:
        self.known = {seen.fingerprint for seen in self.store.findings()}

    def keep(self, number: int, model: Model, conclusion: Conclusion) -> None:
        """What came of one mutant."""
        for finding in conclusion.findings:
            fingerprint = finding.fingerprint
            if fingerprint in self.known:
                self.store.again(fingerprint, number, self.seconds())
                continue
            self.store.found(fingerprint, number, self.seconds(), self._proved(finding, model))
            self.known.add(fingerprint)
            self.last = finding.title
        self.again(number, conclusion.again - conclusion.fingerprints)

    def again(self, number: int, fingerprints: Iterable[str]) -> None:
        """Findings that a mutant shows once more."""
        for fingerprint in fingerprints:
            self.store.again(fingerprint, number, self.seconds())

    def met(self, fingerprint: str) -> None:
        """A finding that was seen once more, by what it looks like."""
        self.store.met(fingerprint, self.seconds())

    def retell(self, finding: Finding) -> None:
        """A finding that is in the store, with what was learnt of it since."""
        if finding.proof is not None:
            told = self._proved(finding, finding.proof.specimen.model)
            self.store.retold(finding.fingerprint, told)

    def _proved(self, finding: Finding, model: Model) -> dict[str, Any]:
        script = write_finding(self.pool, finding, self.targets, self.hellos, self.out)
        repros = {finding.fingerprint: script} if script else {}
        return finding_result(finding, model, repros)
