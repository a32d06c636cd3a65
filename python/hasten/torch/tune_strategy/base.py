# SPDX-License-Identifier: Apache-2.0
"""What every strategy is: it takes a graph of a module to a backend."""

import copy
import logging
import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from hasten.errors import InvalidArgument
from hasten.torch.backend import Backend
from hasten.torch.task.profiling import ProfilingConfig
from hasten.torch.workbench import Trial, Workbench

logger = logging.getLogger("hasten.torch")


class TuneStrategy(ABC):
    """Subclasses implement `_tune`, and `_describe_parts` for the report.

    `module` answers as the user's does; `graph_spec` is the hasten.torch.recording.Graph,
    `data` its recorded samples. `self.workbench` builds, checks and measures.
    """

    def __init__(self, sink=None, profiling_config: ProfilingConfig | None = None):
        self._sink = sink
        self._profiling_config = profiling_config
        self._correctness_check = True
        self._find_max_batch_size = True
        self._lossy_tolerance: float | None = None
        self.backend_results: list[dict] = []
        self.trials: list[Trial] = []
        self.workbench: Workbench

    def enable_correctness_check(self, enable: bool = True):
        self._correctness_check = enable
        return self

    def enable_find_max_batch_size(self, enable: bool = True):
        self._find_max_batch_size = enable
        return self

    def allow_lossy(self, tolerance: float | None):
        """Backends that compute in lower precision count when they stay within this relative
        difference, 0.02 for 2 %; None, the default: within the usual tolerance only."""
        if tolerance is not None and not 0 < tolerance < math.inf:
            raise InvalidArgument(f"a tolerance has to be a number above 0, not {tolerance}")
        self._lossy_tolerance = tolerance
        return self

    def clone(self):
        return copy.deepcopy(self)

    def describe(self) -> str:
        return "\n".join(self._describe_parts())

    def tune(self, module, name, graph_spec, data, device, cache_dir: Path,
             workbench: Workbench) -> Backend:
        """The backend for one graph, active. Raises when the strategy has nothing to offer."""
        self.workbench = workbench
        self.backend_results, self.trials = [], []
        self._pre_tune(module, name, graph_spec, data, device, cache_dir)
        backend = self._tune(module, name, graph_spec, data, device, cache_dir)
        self._post_tune(backend, name, graph_spec, data)
        return backend

    def _pre_tune(self, module, name, graph_spec, data, device, cache_dir) -> None: ...

    @abstractmethod
    def _tune(self, module, name, graph_spec, data, device, cache_dir) -> Backend: ...

    def _post_tune(self, backend, name, graph_spec, data) -> None: ...

    @abstractmethod
    def _describe_parts(self) -> list[str]: ...

    def to_json_dict(self) -> dict[str, Any]:
        return {}

    def _reasons(self) -> str:
        """Why each backend that was tried is out."""
        return "; ".join(f"{trial.backend}: {trial.message}" for trial in self.trials)

    def _build_and_validate_backend(self, backend: Backend, module, name, graph_spec, data, device,
                                    cache_dir, raise_on_failure: bool = False) -> Backend | None:
        """A built, checked copy of `backend`; None, or the original exception, when it failed."""
        trial = Trial(backend.describe())
        self.trials.append(trial)
        stage = "build"
        own = backend.clone()
        try:
            self._build(own, module, graph_spec, data, device, cache_dir)
            if self._correctness_check:
                stage = "check"
                trial.check = self.workbench.check(
                    own, self._lossy_tolerance if own.lossy else None)
                if not trial.check["passed"]:
                    trial.status = "rejected"
                    raise WrongResult(trial.check["message"])
        except Exception as error:  # Whatever a backend raises is a reason to go on without it.
            wrong = isinstance(error, WrongResult) or getattr(error, "code", "") == "wrong_result"
            trial.fail(stage, error, "rejected" if wrong else "failed")
            self._explain_loss(own, trial)
            self.backend_results.append({"backend": backend.describe(), "success": False})
            self.workbench.progress(f"{stage:<11} {backend.describe()}  {trial.message}")
            if raise_on_failure:
                raise
            return None
        self.backend_results.append({"backend": backend.describe(), "success": True})
        return own

    def _explain_loss(self, backend: Backend, trial: Trial) -> None:
        """Says what a user may have missed who wonders why a quantised backend is wrong."""
        message = trial.message or ""
        # A tune in children that leaves nobody has the reasons in one sentence.
        wrong = trial.status == "rejected" or "check failed" in message
        if wrong and backend.lossy and self._lossy_tolerance is None:
            trial.message = (f"{message}; it computes in lower precision: allow_lossy(0.02) of the strategy "
                              "accepts a relative difference of 2 %")

    def _core_options(self) -> dict[str, Any]:
        lossy = self._lossy_tolerance
        return {} if lossy is None else {"allow_lossy": lossy}

    def _build(self, backend: Backend, module, graph_spec, data, device, cache_dir) -> None:
        from hasten.torch.backend import CoreBackend
        folder = Path(cache_dir) / backend.key()
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(backend, CoreBackend):
            backend.check_available()
            _, artifact = self.workbench.build_core(
                [backend], [1] if graph_spec.has_batch_axis() else [],
                strategy="one-backend", performance_validation=False, **self._core_options())
            backend.open(artifact, graph_spec.output)
        else:
            backend.build(module, graph_spec, data, device, folder)


class WrongResult(RuntimeError):
    """A backend answered, and not as the original does."""
