# SPDX-License-Identifier: Apache-2.0
"""From the data that a user has to calls: batches of each wanted size."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from hasten.errors import InvalidArgument

DEFAULT_BATCH_SIZES = [1, 2]
# Of a source that can be read only once: enough for samples at several batch sizes.
MOST_OF_A_STREAM = 256


def calls_of(dataset: Any, batch_sizes: list[int], most: int | None = None
             ) -> Iterator[tuple[int | None, tuple, dict]]:
    """(batch size, args, kwargs) for each wanted batch size, `most` batches of each.

    A tensor is one sample; a sequence, map-style dataset or iterable is samples, each a tensor,
    an array, a number, a mapping (keywords), a sequence (positions) or an (args, kwargs) pair.
    A DataLoader's batches, and samples whose tensors have a batch axis already ((args, kwargs)
    pairs), are used as they are. Fewer samples than a batch needs are cycled.
    """
    if isinstance(dataset, torch.utils.data.DataLoader):
        for batch in itertools.islice(dataset, most or None):
            args, kwargs = as_call(batch)
            yield _batch_size(args, kwargs), args, kwargs
        return
    samples = _samples_of(dataset)
    if not samples:
        raise InvalidArgument("the dataset has no samples")
    if _is_pair(samples[0]):
        for args, kwargs in itertools.islice(samples, most or None):
            yield _batch_size(tuple(args), kwargs), tuple(args), dict(kwargs)
        return
    for size in batch_sizes:
        batches = max(1, len(samples) // size)
        for number in range(min(batches, most) if most else batches):
            rows = [samples[(number * size + row) % len(samples)] for row in range(size)]
            args, kwargs = as_call(collate(rows))
            yield size, args, kwargs


def as_call(batch: Any) -> tuple[tuple, dict]:
    """How a batch is passed: a mapping by keywords, an (args, kwargs) pair as it is, a sequence
    by position, anything else as the one argument."""
    if isinstance(batch, Mapping):
        return (), dict(batch)
    if _is_pair(batch):
        return tuple(batch[0]) if isinstance(batch[0], (tuple, list)) else (batch[0],), dict(batch[1])
    if isinstance(batch, (tuple, list)):
        return tuple(batch), {}
    return (batch,), {}


def collate(rows: list) -> Any:
    """Joins samples into a batch: tensors and arrays are stacked, numbers become a tensor,
    texts a list; containers are joined entry by entry, None stays None."""
    first = rows[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(rows)
    if first is None or isinstance(first, (str, bytes)):
        return None if first is None else list(rows)
    if hasattr(first, "__array__"):
        return torch.stack([torch.as_tensor(row) for row in rows])
    if isinstance(first, (bool, int, float)):
        return torch.tensor(rows)
    if isinstance(first, Mapping):
        return {key: collate([row[key] for row in rows]) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(collate(list(column)) for column in zip(*rows, strict=True))
    raise InvalidArgument(f"samples of the type {type(first).__name__} cannot be joined to a batch",
                          hint="give (args, kwargs) pairs, or a DataLoader with a collate_fn")


def _samples_of(dataset: Any) -> list:
    if isinstance(dataset, torch.Tensor):
        return [dataset]
    if isinstance(dataset, Mapping):
        return [dataset]
    if isinstance(dataset, Sequence) and not isinstance(dataset, (str, bytes)):
        return list(dataset)
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return [dataset[index] for index in range(min(len(dataset), MOST_OF_A_STREAM))]
    if isinstance(dataset, Iterable):
        return list(itertools.islice(dataset, MOST_OF_A_STREAM))
    raise InvalidArgument(f"a {type(dataset).__name__} is no dataset",
                          hint="give a tensor, a list of samples, a dataset or a DataLoader")


def _is_pair(sample: Any) -> bool:
    return isinstance(sample, (tuple, list)) and len(sample) == 2 and \
        isinstance(sample[1], Mapping) and not isinstance(sample[0], Mapping)


def _batch_size(args: tuple, kwargs: dict) -> int | None:
    """The size of the first axis of the first tensor."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor) and value.dim():
            return value.shape[0]
    return None
