#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the tiny TorchScript models under tests/data/torchscript/, which are checked in.

Usage: make_torchscript.py [OUT_DIR]     (needs the package torch)

Each model is small enough to work out by hand; its docstring is its formula.
"""
import pathlib
import random
import sys
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn


class Pair(NamedTuple):
    low: Tensor
    high: Tensor


class Affine(nn.Module):
    """2 x + 1"""
    def forward(self, x: Tensor):
        return 2 * x + 1


class Same(nn.Module):
    """x itself"""
    def forward(self, x: Tensor):
        return x


class Nested(nn.Module):
    """(x + 1, (x + 2, (low = x + 3, high = x + 4)), None, x + 5)"""
    def forward(self, x: Tensor) -> Tuple[Tensor, Tuple[Tensor, Pair], None, Tensor]:
        return x + 1, (x + 2, Pair(x + 3, x + 4)), None, x + 5


class Dictionary(nn.Module):
    """{"sum": x + y, "parts": [x, y]}; how many parts there are shows in a call only"""
    def forward(self, x: Tensor, y: Tensor) -> Dict[str, List[Tensor]]:
        return {"sum": [x + y], "parts": [x * 1, y * 1]}


class Numbers(nn.Module):
    """(x, rows of x, 3.5, rows of x > 2)"""
    def forward(self, x: Tensor):
        return x, x.size(0), 3.5, x.size(0) > 2


class Defaults(nn.Module):
    """scale x + (y or 0)"""
    def forward(self, x: Tensor, scale: float = 2.0, y: Optional[Tensor] = None):
        result = scale * x
        return result if y is None else result + y


class NumberInput(nn.Module):
    """x + n, where n is no tensor"""
    def forward(self, x: Tensor, n: int):
        return x + n


class Training(nn.Module):
    """dropout(x), saved in training mode"""
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout()

    def forward(self, x: Tensor):
        return self.dropout(x)


class State(nn.Module):
    """x + the number of calls before this one"""
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor):
        result = x + self.count
        self.count += 1
        return result


class Writes(nn.Module):
    """doubles x in place and returns it plus 1"""
    def forward(self, x: Tensor):
        x.mul_(2)
        return x + 1


class Conjugate(nn.Module):
    """(conj(z), its real part, its imaginary part), all of them lazy views"""
    def forward(self, z: Tensor):
        c = z.conj()
        return c, torch.real(c), torch.imag(c)


class Transposed(nn.Module):
    """x + 1 of a matrix, transposed as a view"""
    def forward(self, x: Tensor):
        return (x + 1).t()


class Image(nn.Module):
    """relu(batch_norm(conv(x))) with 1/9 as every weight: a mean of 3 x 3, minus 1, halved"""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2, eps=0.0)
        nn.init.constant_(self.conv.weight, 1 / 9)
        nn.init.zeros_(self.conv.bias)
        self.norm.running_mean.fill_(1)
        self.norm.running_var.fill_(4)

    def forward(self, x: Tensor):
        return torch.relu(self.norm(self.conv(x)))


class Third(nn.Module):
    """1/3 as float32 would round it, but by dtypes that the graph names itself"""
    def forward(self, x: Tensor):
        ones = torch.ones([1], dtype=torch.float32)
        return (x.to(torch.float32) * ones / 3).to(dtype=torch.float32)


class Raises(nn.Module):
    """raises for every x"""
    def forward(self, x: Tensor):
        if x.dim() >= 0:
            raise ValueError("no such thing as x")
        return x


class Weight(nn.Module):
    """the weight [1, 2, 3] itself, and x + 1"""
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: Tensor):
        return self.weight, x + 1


class Branch(nn.Module):
    """2 x where the sum of x is above 0, else x - 1"""
    def forward(self, x: Tensor):
        if float(x.sum()) > 0:
            return 2 * x
        return x - 1


MODELS = {"affine": Affine, "same": Same, "nested": Nested, "dictionary": Dictionary,
          "numbers": Numbers, "defaults": Defaults, "number_input": NumberInput, "state": State,
          "writes": Writes, "conjugate": Conjugate, "transposed": Transposed, "image": Image,
          "third": Third, "raises": Raises, "weight": Weight, "branch": Branch}


def main(out: pathlib.Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, model in MODELS.items():
        torch.jit.script(model().eval()).save(str(out / f"{name}.pt"))
    torch.jit.script(Training()).save(str(out / "training.pt"))
    frozen = torch.jit.freeze(torch.jit.script(Image().eval()))
    frozen.save(str(out / "frozen.pt"))
    whole = (out / "affine.pt").read_bytes()
    (out / "truncated.pt").write_bytes(whole[:len(whole) // 2])
    (out / "random.pt").write_bytes(random.Random(0).randbytes(1000))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1
         else pathlib.Path(__file__).parent / "torchscript")
