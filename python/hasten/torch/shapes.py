# SPDX-License-Identifier: Apache-2.0
"""Axes that the user declares: DynamicDim and BatchDim."""

from dataclasses import dataclass

import torch

from hasten.errors import InvalidArgument


@dataclass(frozen=True)
class DynamicDim:
    """An axis whose size varies from `min` to `max`; `opt` is the size to optimise for.

    Axes of one name have one size in each call. Raises InvalidArgument (a ValueError) unless
    0 < min < max and min <= opt <= max.
    """
    name: str
    min: int
    max: int
    opt: int | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgument("the name of a dimension has to be a non-empty string")
        for field in ("min", "max", "opt"):
            value = getattr(self, field)
            if value is None and field == "opt":
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidArgument(f"dimension '{self.name}': {field} has to be an int, "
                                      f"not {value!r}")
            if value <= 0:
                raise InvalidArgument(f"dimension '{self.name}': {field} has to be above 0")
        if self.min >= self.max:
            raise InvalidArgument(f"dimension '{self.name}': min {self.min} is not below "
                                  f"max {self.max}")
        if self.opt is not None and not self.min <= self.opt <= self.max:
            raise InvalidArgument(f"dimension '{self.name}': opt {self.opt} is not within "
                                  f"{self.min} to {self.max}")


@dataclass(frozen=True)
class BatchDim(DynamicDim):
    """The axis along which calls can be joined."""


Shape = tuple  # Of int and DynamicDim, one per axis.
Path = str | tuple


class DeclaredShapes:
    """The `dynamic_shapes` of a module: path of a tensor -> its axes.

    A path is the name of a parameter, or a tuple of it and of the keys below it.
    """

    def __init__(self, shapes: dict[Path, Shape]):
        if not isinstance(shapes, dict):
            raise InvalidArgument("dynamic_shapes has to be a dictionary: path -> tuple of axes")
        self.shapes = {_checked_path(path): _checked_shape(path, shape)
                       for path, shape in shapes.items()}
        dims: dict[str, DynamicDim] = {}
        for path, shape in self.shapes.items():
            for axis in shape:
                if isinstance(axis, DynamicDim) and dims.setdefault(axis.name, axis) != axis:
                    raise InvalidArgument(f"dimension '{axis.name}' is declared in two ways; "
                                          f"the second is in the shape of {_text(path)}")

    def check(self, paths: list[tuple], tensors: list[torch.Tensor]) -> None:
        """Raises InvalidArgument for a tensor that contradicts what was declared."""
        sizes: dict[str, int] = {}
        for path, tensor in zip(paths, tensors):
            shape = self.shapes.get(path)
            if shape is None:
                continue
            if len(shape) != tensor.dim():
                raise InvalidArgument(f"{_text(path)} is declared with {len(shape)} axes, "
                                      f"but has {tensor.dim()}")
            for position, (axis, size) in enumerate(zip(shape, tensor.shape)):
                where = f"axis {position} of {_text(path)}"
                if isinstance(axis, int):
                    if axis != size:
                        raise InvalidArgument(f"{where} is declared {axis}, but is {size}")
                elif not axis.min <= size <= axis.max:
                    raise InvalidArgument(f"{where} is declared {axis.name} from {axis.min} to "
                                          f"{axis.max}, but is {size}")
                elif sizes.setdefault(axis.name, size) != size:
                    raise InvalidArgument(f"{where}: dimension '{axis.name}' is {size} here and "
                                          f"{sizes[axis.name]} elsewhere in the same call")

    def apply(self, graph: dict, paths: list[tuple]) -> dict:
        """The graph (as hasten._core describes it) with the declared axes in place."""
        for spec, path in zip(graph["inputs"], paths):
            for position, axis in enumerate(self.shapes.get(path, ())):
                spec["axes"][position] = _axis(axis)
        return graph


def _axis(axis: int | DynamicDim) -> dict:
    if isinstance(axis, int):
        return {"kind": "static", "min": axis, "max": axis}
    kind = "batch" if isinstance(axis, BatchDim) else "dynamic"
    return {"kind": kind, "symbol": axis.name, "min": axis.min, "max": axis.max, "multiplier": 1}


def _checked_path(path: Path) -> tuple:
    if isinstance(path, str) and path:
        return (path,)
    if isinstance(path, tuple) and len(path) >= 2 and isinstance(path[0], str) and path[0] and \
            all(isinstance(key, (str, int)) and not isinstance(key, bool) for key in path):
        return path
    raise InvalidArgument(f"{path!r} is no path: give the name of a parameter, or a tuple of it "
                          "and of the keys below it")


def _checked_shape(path: Path, shape: Shape) -> Shape:
    if not isinstance(shape, tuple):
        raise InvalidArgument(f"the shape of {path!r} has to be a tuple, not {shape!r}")
    for axis in shape:
        if isinstance(axis, DynamicDim):
            continue
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise InvalidArgument(f"the shape of {path!r}: an axis is an int, a DynamicDim or a "
                                  f"BatchDim, not {axis!r}")
        if axis < 0:
            raise InvalidArgument(f"the shape of {path!r}: a size cannot be {axis}")
    return shape


def _text(path: tuple) -> str:
    return path[0] + "".join(f"[{key!r}]" for key in path[1:])
