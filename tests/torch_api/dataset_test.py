# SPDX-License-Identifier: Apache-2.0
"""From the data that users have to calls."""

import numpy as np
import pytest
import torch

from hasten.errors import InvalidArgument
from hasten.torch.dataset import calls_of


def shapes(dataset, sizes, most=None):
    return [(size, *[tuple(a.shape) for a in args], *[(k, tuple(v.shape)) for k, v in kwargs.items()])
            for size, args, kwargs in calls_of(dataset, sizes, most)]


ROWS = [torch.full((3,), i) for i in range(10)]


def test_a_tensor_is_one_sample():
    assert shapes(torch.zeros(10, 10), [1, 2]) == [(1, (1, 10, 10)), (2, (2, 10, 10))]


def test_samples_are_joined_and_the_rest_left_out():
    calls = list(calls_of(ROWS, [4]))
    assert [args[0][:, 0].tolist() for _, args, _ in calls] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert shapes(ROWS, [4], most=1) == [(4, (4, 3))]


def test_fewer_samples_than_a_batch_are_cycled():
    ((_, args, _),) = calls_of(ROWS[:3], [8])
    assert args[0][:, 0].tolist() == [0, 1, 2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("dataset, expected", [
    ([{"ids": torch.zeros(5), "mask": torch.ones(5)}] * 2, (2, ("ids", (2, 5)), ("mask", (2, 5)))),
    ([(torch.zeros(5), torch.ones(4))] * 2, (2, (2, 5), (2, 4))),
    ([np.zeros((2, 2), np.float32)] * 2, (2, (2, 2, 2))),
    ([1.5, 2.5], (2, (2,))),
    ((torch.zeros(5) for _ in range(2)), (2, (2, 5))),
    (torch.utils.data.TensorDataset(torch.zeros(2, 7)), (2, (2, 7))),
])
def test_kinds_of_samples(dataset, expected):
    assert shapes(dataset, [2]) == [expected]


def test_pairs_of_args_and_kwargs_are_calls_as_they_are():
    pair = ((torch.zeros(3, 5),), {"y": torch.zeros(3, 2)})
    assert shapes([pair], [1, 2]) == [(3, (3, 5), ("y", (3, 2)))]


def test_a_loader_has_its_own_batches():
    loader = torch.utils.data.DataLoader(ROWS, batch_size=5)
    assert shapes(loader, [1, 2]) == [(5, (5, 3)), (5, (5, 3))]


@pytest.mark.parametrize("dataset, message", [([], "no samples"), (3, "no dataset"),
                                              ([object()], "cannot be joined")])
def test_what_is_no_data_is_refused(dataset, message):
    with pytest.raises(InvalidArgument, match=message):
        list(calls_of(dataset, [1]))
