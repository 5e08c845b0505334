# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Memory for the results of many states, reused once no array refers to it.

Benefit: the system clears every page before its first use, which takes as long as computing most
results. Reused memory has been cleared, and huge pages are cleared faster than small ones.
Safeguard: memory returns only when the last array that refers to it is gone; results stay the
caller's own. At most `KEPT` bytes are idle, and the system may take them at any time.
Risk: `MADV_HUGEPAGE` and `MADV_FREE` are Linux's; without them, nothing but speed is lost.

"""

from contextlib import suppress
import mmap
import os

import numpy as np

# Size of results for which NumPy's allocation begins to be slow, and of a huge page, bytes.
SMALLEST, HUGE = 2 ** 18, 2 ** 21
# Idle memory, bytes: at most a sixteenth of the machine's.
KEPT = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 16
# Idle pages by size. All changes are single operations of lists, which need no lock: memory may
# return in any thread, and in the middle of any other function.
_idle: dict[int, list[mmap.mmap]] = {}


class _Loan:
    """Pages in use; the arrays made of them refer to it."""

    def __init__(self, pages: mmap.mmap, size: int) -> None:
        self._pages = pages
        self.__array_interface__ = np.frombuffer(pages, np.uint8, size).__array_interface__

    def __del__(self) -> None:
        """Keep pages for later, instead of the largest ones if there are too many."""
        # Small pages would be mapped again one by one.
        if len(self._pages) >= HUGE:
            _advise(self._pages, 'MADV_FREE')
        _idle.setdefault(len(self._pages), []).append(self._pages)
        while idle_bytes() > KEPT:
            largest = max((size for size, same in list(_idle.items()) if same), default=0)
            try:
                _idle[largest].pop(0)
            except (KeyError, IndexError):
                return      # another thread was faster


def result_bytes(size: int) -> np.ndarray:
    """Return an array of bytes whose content is arbitrary; MemoryError if there are too few."""
    # Powers of two serve results of similar sizes, too; what is not kept needs no rounding.
    whole = 1 << (size - 1).bit_length() if size <= KEPT else size
    try:
        pages = _idle[whole].pop()
    except (KeyError, IndexError):
        pages = _new_pages(whole)
    return np.asarray(_Loan(pages, size))


def _new_pages(size: int) -> mmap.mmap:
    """Return new pages, huge ones if the system has them."""
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        raise MemoryError(f'results need {size / 1e9:.3g} GB; compute fewer states at '
                          'once') from None
    _advise(pages, 'MADV_HUGEPAGE')
    return pages


def idle_bytes() -> int:
    """Return how many bytes wait for their next use."""
    return sum(size * len(pages) for size, pages in list(_idle.items()))


def _advise(pages: mmap.mmap, advice: str) -> None:
    """Advise the system on pages, if it knows that advice."""
    with suppress(AttributeError, OSError):
        pages.madvise(getattr(mmap, advice))
