# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The functions that can be traced: the declared quantities that run on symbols."""

from collections.abc import Iterator, Mapping
import re

from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.documentation import USUAL
from rbd_ros.workspace.quantity import Quantity, VECTORS

# Meanings of inputs, without their shapes.
INPUTS = {name: re.sub(r' \(n[qv],\)', '', USUAL[name]) for name in VECTORS}


class Functions(Mapping[str, Quantity]):
    """The quantities by their names in generated code, or in the library."""

    def __getitem__(self, name: str) -> Quantity:
        for one in QUANTITIES.values():
            if name in (one.name, one.in_code) and not one.untraced:
                return one
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (one.in_code for one in QUANTITIES.values() if not one.untraced)

    def __len__(self) -> int:
        return len(list(iter(self)))


FUNCTIONS = Functions()
