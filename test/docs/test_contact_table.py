# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The page about contacts has the values that the library computes with."""

from pathlib import Path

from rbd_ros.analysis import BODY_REGIONS

PAGE = Path(__file__).parents[2] / 'doc/how_to/contact_speed.md'


def test_the_table_of_body_regions_is_that_of_the_library():
    text = PAGE.read_text(encoding='utf-8')
    rows = [f'| {name} | {one.clamped_force:g} | {one.free_force:g} | {one.stiffness / 1e3:g} | '
            f'{one.mass:g} |' for name, one in BODY_REGIONS.items()]
    assert '\n'.join(rows) in text
