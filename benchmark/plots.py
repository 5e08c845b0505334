# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The plots of the report: one function and one PNG for each part."""

from matplotlib.figure import Figure
import numpy as np

# In the order of the robots and functions; safe for colour-blind readers.
COLOURS = ('#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#999999',
           '#000000')


def ratios(results, path):
    """Draw the ratios of our times to Pinocchio's, with quartiles."""
    rows = [row for row in results['rows'] if 'Pinocchio' in row['ratio']]
    functions = list(dict.fromkeys(row['function'] for row in rows))
    robots = list(dict.fromkeys(row['robot'] for row in rows))
    figure = Figure(figsize=(8.0, 6.0), layout='constrained')
    axes = figure.subplots()
    height = 0.8 / len(robots)
    for k, robot in enumerate(robots):
        mine = [row for row in rows if row['robot'] == robot]
        low, middle, high = np.array([row['ratio']['Pinocchio'] for row in mine]).T
        places = np.array([functions.index(row['function']) for row in mine]) + k * height
        axes.barh(places, middle, height, color=COLOURS[k], label=robot,
                  xerr=(middle - low, high - middle), error_kw={'linewidth': 0.8})
    axes.axvline(1.0, color='black', linewidth=0.8)
    axes.set_xscale('log')
    axes.set_yticks(np.arange(len(functions)) + 0.4 - height / 2, functions)
    axes.invert_yaxis()
    axes.set_xlabel('time of rbd_ros / time of Pinocchio, both called from Python')
    axes.legend()
    _save(figure, path)


def growth(results, path):
    """Draw times over the number of joints."""
    figure = Figure(figsize=(9.0, 4.5), layout='constrained')
    both = figure.subplots(1, 2, sharey=True)
    for axes, (shape, functions) in zip(both, results['shapes'].items()):
        for colour, (function, row) in zip(COLOURS, functions.items()):
            axes.loglog(results['sizes'], row['us'], 'o-', color=colour, markersize=4,
                        label=f'{function}: n^{row["exponent"]:.2f}')
        axes.set_title({'chain': 'chains', 'tree': 'balanced binary trees'}[shape])
        axes.set_xlabel('joints')
        axes.grid(alpha=0.3)
        axes.legend(fontsize='small')
    both[0].set_ylabel('time of a call, µs')
    _save(figure, path)


def batch(results, path):
    """Draw states per second."""
    robots = list(dict.fromkeys(row['robot'] for row in results['rows']))
    figure = Figure(figsize=(11.0, 4.0), layout='constrained')
    all_axes = figure.subplots(1, len(robots), sharey=True)
    for axes, robot in zip(all_axes, robots):
        rows = [row for row in results['rows'] if row['robot'] == robot]
        functions = list(dict.fromkeys(row['function'] for row in rows))
        series = [(library, threads) for library in ('rbd_ros', 'Pinocchio') for threads in (1, 2)]
        for k, (library, threads) in enumerate(series):
            mine = [row for row in rows if row['threads'] == threads and library in row['ns']]
            axes.barh([functions.index(row['function']) + 0.2 * k for row in mine],
                      [1e3 / row['ns'][library] for row in mine], 0.2,
                      color=COLOURS[k], label=f'{library}, {threads} thread{"s" * (threads > 1)}')
        axes.set_yticks(np.arange(len(functions)) + 0.3, functions)
        axes.invert_yaxis()
        axes.set_title(robot)
        axes.set_xscale('log')
        axes.set_xlabel('million states per second')
    all_axes[-1].legend(fontsize='small')
    _save(figure, path)


def node(results, path):
    """Draw percentiles of the latency and the CPU time over the rate."""
    figure = Figure(figsize=(9.0, 4.8), layout='constrained')
    left, right = figure.subplots(1, 2)
    rows = [row for row in results['rows']
            if 'failed' not in row and row['node'] == 'rbd_ros']
    series = list(dict.fromkeys((row['joints'], row['executor']) for row in rows))
    for colour, (joints, executor) in zip(COLOURS, series):
        mine = [row for row in rows if (row['joints'], row['executor']) == (joints, executor)]
        rates = [row['rate'] for row in mine]
        for percentile, style in (('p50', 'o-'), ('p99', 's--'), ('p99.9', '^:')):
            left.semilogy(rates, [row[f'{percentile} ms'] for row in mine], style, color=colour,
                          label=f'{joints} joints, {executor}, {percentile}')
        right.plot(rates, [row['CPU %'] for row in mine], 'o-', color=colour)
    left.set_ylabel('from joint state to last output, ms')
    right.set_ylabel('CPU time, % of one core')
    for axes in (left, right):
        axes.set_xlabel('joint states per second, Hz')
        axes.grid(alpha=0.3)
    figure.legend(loc='outside lower center', ncols=len(series), fontsize='x-small')
    _save(figure, path)


def _save(figure, path):
    figure.savefig(path, dpi=110, metadata={'Software': None})
