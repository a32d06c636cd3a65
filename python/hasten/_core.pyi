"""The core of hasten."""

from collections.abc import Sequence
import os


class Session:
    """
    A loaded artifact. run() may be called from several threads; the GIL is released while the backend works.
    """

    @staticmethod
    def load(path: str | os.PathLike, threads: int = 0, verify: bool = True) -> Session:
        """
        Opens an artifact. threads: CPUs the backend may use, 0 for all. Raises HastenError with the name of the file that is wrong.
        """

    @property
    def inputs(self) -> list[tuple[str, str, list[str]]]:
        """(name, dtype, axes) of each input; an axis as in an input SPEC."""

    @property
    def outputs(self) -> list[tuple[str, str, list[str]]]:
        """(name, dtype, axes) of each output."""

    @property
    def backend(self) -> str:
        """The candidate in use: NAME:key=value,..."""

    @property
    def warnings(self) -> list[str]: ...

    def run(self, inputs: list, like: object) -> list:
        """
        The outputs for `inputs`, tensors in the order of `inputs`, in any strides. The results are tensors of the framework of the tensor `like`.
        """

def tune(model: str | os.PathLike, inputs: Sequence[str], *, strategy: str = 'max-throughput', backends: Sequence[str] = [], batch_sizes: Sequence[int] = [], latency_budget_ms: float | None = None, min_speedup: float = 0.01, performance_validation: bool = True, atol: float | None = None, rtol: float | None = None, allow_lossy: float | None = None, max_time_s: float | None = None, build_timeout_s: float = 600.0, run_timeout_s: float = 60.0, threads: int = 0, seed: int = 0, output: str | os.PathLike = ..., progress: object | None = None, heartbeat: object | None = None) -> tuple:
    """
    What `hasten tune` does; see hasten/tune.h. Returns the report as JSON and as a table. `progress(stage, candidate, text)` is called from this thread, and `heartbeat()` at least ten times a second; an exception in them, or Ctrl-C, ends the tune within two seconds and is raised again.
    """

def graphs_of(names: Sequence[str], calls: list, batch_sizes: Sequence[int | None]) -> str:
    """
    Groups recorded calls (each a list of tensors) by rank and dtype, and says of every axis whether it is static, follows the batch, or varies otherwise. JSON: a list of {'graph': ..., 'calls': [indices]}.
    """

class Judge:
    """Holds what the original answered; says whether others answer the same."""

    def __init__(self, names: Sequence[str], atol: float | None = None, rtol: float | None = None, lossy: float | None = None) -> None: ...

    def add(self, what: str, outputs: list, exact: list = []) -> None:
        """
        One case: the original's outputs, and the same in float64 where the model can do that.
        """

    def check(self, index: int, outputs: list) -> str:
        """
        The outputs of another for case `index`, as the JSON of a check (see docs/schema/tune.schema.json).
        """

def race(arms: list, *, batch_size: int = 1, min_rounds: int = 10, max_rounds: int = 40, max_time_s: float | None = None, seed: int = 0, heartbeat: object | None = None) -> str:
    """
    Rounds of turns over `arms`, tuples (label, callable, keep); the first is what the others are compared with. `heartbeat()` is called after each turn; an exception in it ends the race and is raised again. JSON: {'arms': [{'label', 'point', 'dropped', 'error'}], ...}.
    """

def choose(strategy: str, performance_validation: bool, trials: Sequence[str], baseline: str, latency_budget_ms: float | None = None) -> str:
    """
    What a strategy chooses among trials (JSON texts, as in a report; 'null': the original was not measured). JSON; its 'trial' is an index, or null for the original.
    """
