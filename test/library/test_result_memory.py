# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Memory of results: no living array changes, whatever is dropped, kept in part, or forked.

Invariant: arrays in use share no memory with each other, and what is idle is at most `KEPT`.
"""

import gc
import os
import subprocess
import sys
from threading import Thread

from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, consumes, invariant, rule, RuleBasedStateMachine
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.batch import results
from rbd_ros.batch.results import idle_bytes, result_bytes

MIB = 2 ** 20


@pytest.fixture(autouse=True)
def _nothing_idle(monkeypatch):
    """Begin without idle memory, of which little is kept."""
    gc.collect()    # Arrays of earlier tests would be returned later.
    monkeypatch.setattr(results, '_idle', {})
    monkeypatch.setattr(results, 'KEPT', 12 * MIB)


class Memory(RuleBasedStateMachine):
    """Arrays and parts of them, taken and dropped in any order."""

    arrays = Bundle('arrays')

    def __init__(self):
        super().__init__()
        self.living, self.count = {}, 0

    @rule(target=arrays, size=st.sampled_from(
        [MIB // 4, MIB, 2 * MIB, 2 * MIB + 1, 5 * MIB, 9 * MIB]))
    def take(self, size):
        """Take memory and write to it."""
        array = result_bytes(size)
        assert array.shape == (size,) and array.flags.writeable and array.flags.c_contiguous
        self.count += 1
        array.fill(self.count % 251)
        self.living[self.count] = array
        return self.count

    @rule(number=arrays, start=st.integers(0, MIB // 8))
    def keep_a_part(self, number, start):
        """Keep a view alone."""
        self.living[number] = self.living[number][start:].reshape(1, -1).T

    @rule(number=consumes(arrays))
    def drop(self, number):
        """Drop an array."""
        del self.living[number]

    @invariant()
    def contents_stay(self):
        """Check the contents of all arrays: if two shared memory, one would have the other's."""
        for number, array in self.living.items():
            assert np.all(array[::509] == number % 251)

    @invariant()
    def idle_memory_is_bounded(self):
        """Check what is kept."""
        assert 0 <= idle_bytes() <= 12 * MIB


TestMemory = Memory.TestCase
TestMemory.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


def test_memory_is_used_again_once_the_last_view_is_gone():
    array = result_bytes(3 * MIB)
    address, part = array.ctypes.data, array[MIB:].view(float)
    del array
    assert idle_bytes() == 0
    assert result_bytes(3 * MIB).ctypes.data != address
    assert idle_bytes() == 4 * MIB
    del part
    assert idle_bytes() == 8 * MIB
    again = [result_bytes(3 * MIB + 5), result_bytes(4 * MIB)]
    assert address in {one.ctypes.data for one in again} and idle_bytes() == 0


def test_the_largest_idle_memory_goes_first():
    arrays = [result_bytes(size * MIB) for size in (2, 8, 4)]
    while arrays:
        arrays.pop(0)
    assert idle_bytes() == 6 * MIB
    del arrays
    assert result_bytes(16 * MIB).shape == (16 * MIB,)
    assert idle_bytes() == 6 * MIB


def test_results_of_many_states_use_memory_again_and_stay_the_callers():
    model = rbd_ros.load_urdf('urdf/demo_arm.urdf')
    q, v = np.random.default_rng(1).uniform(-1.0, 1.0, (2, 4003, model.nv))
    # Other threads may hold results a little longer.
    first = batch.all_terms(model, q, v, threads=1)
    expected = [array.copy() for array in first]
    second = batch.all_terms(model, q[::-1], v[::-1], threads=1)
    assert all(map(np.array_equal, first, expected))
    part, address = first.M[10], first.M.ctypes.data
    del first
    batch.all_terms(model, np.zeros_like(q), v, threads=1)
    assert np.array_equal(part, expected[0][10])
    del part
    assert idle_bytes() > 0
    fourth = batch.all_terms(model, q, v, threads=1)
    assert fourth.M.ctypes.data == address
    assert all(map(np.array_equal, fourth, expected))
    assert all(np.array_equal(x[::-1], y) for x, y in zip(second, expected))


def test_forked_processes_have_memory_of_their_own():
    living, idle = result_bytes(2 * MIB), result_bytes(4 * MIB)
    living.fill(1)
    del idle
    child = os.fork()
    if child == 0:
        taken = result_bytes(4 * MIB)
        taken.fill(7)
        living.fill(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    taken = result_bytes(4 * MIB)
    assert np.all(living == 1) and not np.any(taken[:MIB] == 7)


def test_threads_never_get_the_same_memory():
    wrong = []

    def work(token):
        for k in range(300):
            array = result_bytes(MIB + 64 * k)
            array[::4096] = token
            kept = array[::4096]
            del array
            if not np.all(kept == token):
                wrong.append(token)
    threads = [Thread(target=work, args=(token,)) for token in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and idle_bytes() <= 12 * MIB


def test_a_process_ends_silently_while_results_are_in_use():
    ended = subprocess.run([sys.executable, '-c', """
from rbd_ros.batch.results import result_bytes
class Holder: pass
holder = Holder()
holder.itself, holder.array = holder, result_bytes(2 ** 22)
kept = [result_bytes(2 ** 21) for k in range(3)]
"""], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, '', '')


@pytest.mark.parametrize('missing', ['MADV_HUGEPAGE', 'MADV_FREE'])
def test_systems_without_an_advice_are_served(missing, monkeypatch):
    monkeypatch.delattr(results.mmap, missing, raising=False)
    array = result_bytes(2 * MIB)
    array.fill(3)
    del array
    assert idle_bytes() == 2 * MIB and len(result_bytes(MIB)) == MIB


def test_results_without_memory_name_their_size():
    with pytest.raises(MemoryError, match=r'results need 1e\+09 GB; compute fewer states'):
        result_bytes(10 ** 18)
    with pytest.raises(MemoryError, match='GB; compute fewer states'):
        result_bytes(10 ** 30)


def test_results_too_large_to_be_kept_take_no_more_than_they_need():
    array = result_bytes(12 * MIB + 1)
    array.fill(1)
    del array
    assert idle_bytes() == 0


def test_the_system_may_take_large_idle_memory():
    def lazily_freed():
        with open('/proc/self/smaps_rollup', encoding='ascii') as rollup:
            return next(1024 * int(line.split()[1]) for line in rollup
                        if line.startswith('LazyFree'))
    array = result_bytes(8 * MIB)
    array.fill(1)
    before = lazily_freed()
    del array
    assert idle_bytes() == 8 * MIB
    # The system counts some pages later.
    assert lazily_freed() - before > 7 * MIB
    array = result_bytes(8 * MIB)
    array.fill(2)
    assert np.all(array == 2) and idle_bytes() == 0
