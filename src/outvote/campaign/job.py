"""What a campaign is asked to do. It is stored with the campaign, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from outvote.core.target import Target
from outvote.judge.compare import Settings
from outvote.run.process import Limits
from outvote.search.genetic import GeneticSettings

MAD_THRESHOLD = 0.4  # T (LEMON, section 4.4)
SILENCE_SECONDS = 60.0  # without progress, before a worker hangs
_GENERATION = 8


@dataclass(frozen=True)
class Budget:
    """When a campaign ends: after so many mutants, so many seconds, or so many layer kinds."""

    mutants: int | None = None
    seconds: float | None = None
    coverage: float | None = None  # share of the drawable layer kinds that mutants have held

    def spent(self, mutants: int, seconds: float, coverage: float) -> float:
        """Which share of it is spent, by what is nearest to its end."""
        amounts = ((mutants, self.mutants), (seconds, self.seconds), (coverage, self.coverage))
        limited = [(spent, limit) for spent, limit in amounts if limit is not None]
        return max((spent / limit if limit else 1.0 for spent, limit in limited), default=0.0)


@dataclass(frozen=True)
class SeedFile:
    """A model to breed from, and its data."""

    name: str
    model: Path
    data: Path | None


@dataclass(frozen=True)
class FuzzJob:
    """Everything `fuzz` is asked to do."""

    seeds: tuple[SeedFile, ...]
    targets: tuple[Target, ...]
    strategy: str = "lemon"
    budget: Budget = Budget(mutants=500)
    seed: int = 0
    inputs: int = 32  # of each seed's data
    jobs: int | None = None
    mad_threshold: float = MAD_THRESHOLD
    breed_known: bool = False  # also breed from mutants whose difference is a known finding
    line_coverage: bool = True  # targets tell which lines of their libraries models reach
    keep_outputs: bool = True  # incremental execution: workers keep layers' outputs
    generation: int = _GENERATION  # mutants that are asked for before the strategy is told
    rules: tuple[str, ...] = ()  # all, if none is named
    oracle: str = ""  # one that is used where it is asked for
    search: str = "genetic"  # or "gradient": how AUDEE's search moves inputs
    genetic: GeneticSettings = field(default_factory=GeneticSettings)
    memory_limit: int = 3 << 30  # a worker above it is replaced by a fresh one
    minimise: float = 20.0  # seconds to make one finding small; 0: leave them as they are
    confirm: int = 1  # fresh workers in which every finding must show again, at the end
    limits: Limits = field(default_factory=lambda: Limits(silence_seconds=SILENCE_SECONDS))

    @property
    def dialect(self) -> str:
        """What seeds and targets speak."""
        return self.targets[0].dialect

    @property
    def in_bulk(self) -> bool:
        """Whether the dialect draws all cases: there is no model to breed from."""
        return not self.seeds

    @property
    def settings(self) -> Settings:
        return Settings(metrics=("mad", "relative"), mad_threshold=self.mad_threshold)

    def stored(self) -> dict[str, Any]:
        """What a resumed campaign must agree on, as JSON."""
        return {
            "seeds": [
                [s.name, str(s.model.absolute()), str(s.data.absolute()) if s.data else None]
                for s in self.seeds
            ],
            "targets": [target.name for target in self.targets],
            "strategy": self.strategy,
            "budget": asdict(self.budget),
            "seed": self.seed,
            "inputs": self.inputs,
            "mad_threshold": self.mad_threshold,
            "breed_known": self.breed_known,
            "generation": self.generation,
            "rules": list(self.rules),
            "oracle": self.oracle,
            "search": self.search,
            "genetic": asdict(self.genetic),
            "minimise": self.minimise,
            "confirm": self.confirm,
            "jobs": self.jobs,
            "timeout": self.limits.silence_seconds,
            "memory_limit": self.memory_limit,
            "keep_outputs": self.keep_outputs,
            "line_coverage": self.line_coverage,
        }

    @staticmethod
    def restored(data: Mapping[str, Any], targets: Mapping[str, Target]) -> FuzzJob:
        return FuzzJob(
            seeds=tuple(
                SeedFile(name, Path(model), Path(file) if file else None)
                for name, model, file in data["seeds"]
            ),
            targets=tuple(targets[name] for name in data["targets"]),
            strategy=data["strategy"],
            budget=Budget(**data["budget"]),
            seed=data["seed"],
            inputs=data["inputs"],
            mad_threshold=data["mad_threshold"],
            breed_known=data["breed_known"],
            generation=data["generation"],
            rules=tuple(data["rules"]),
            oracle=data.get("oracle", ""),
            search=data.get("search", "genetic"),
            genetic=GeneticSettings(**data.get("genetic", {})),
            minimise=data.get("minimise", FuzzJob.minimise),
            confirm=data.get("confirm", FuzzJob.confirm),
            jobs=data.get("jobs"),
            limits=Limits(silence_seconds=data.get("timeout", SILENCE_SECONDS)),
            memory_limit=data.get("memory_limit", FuzzJob.memory_limit),
            keep_outputs=data.get("keep_outputs", FuzzJob.keep_outputs),
            line_coverage=data.get("line_coverage", False),  # campaigns of before had none
        )

    def but(self, **changes: Any) -> FuzzJob:
        return replace(self, **changes)
