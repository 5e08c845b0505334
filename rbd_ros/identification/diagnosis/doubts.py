# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Doubts about recordings that a fit of the robot's parameters would not notice."""

from dataclasses import replace

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.identification.diagnosis.competition import MASSES
from rbd_ros.identification.diagnosis.detectors import beyond_limits
from rbd_ros.identification.diagnosis.diagnose import diagnose_samples, Diagnosis
from rbd_ros.identification.diagnosis.hypotheses import FACTORS, HYPOTHESES, words_of_factors
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples

# What a fit explains beside friction.
DRIVES = ('rotor', 'torque_offset')
RIVALS = ('payload', 'gravity_direction', 'zero_offset', 'spring')
# Factors of all joints within 1/FACTOR ... FACTOR may be errors of the masses; those of a single
# joint within the second one, or the third if its torques are less than a share of the largest
# ones of the URDF: errors of light links change them much more.
MAX_FACTOR, MAX_JOINT_FACTOR, MAX_WEAK_FACTOR, WEAK = 1.5, 1.8, 5.0, 0.1
MAX_LEFT = 0.5  # Largest share of the RMS efforts of a joint whose factor is known.
UNSURE = 0.2    # Deviation of a factor that is not known, as a share of the factor.


def effort_doubts(model: Model, samples: Samples) -> dict[str, str]:
    """Return why efforts look like other quantities than the torques of the joints, by kind."""
    # A fit adapts masses to any factor of the efforts, so these are compared with the description.
    # What a fit finds by itself competes, but is no doubt; nor are factors that may be errors of
    # the masses.
    limits = beyond_limits(model, np.abs(samples.tau))
    doubts = {'limits': limits.text} if limits else {}
    if not np.any(samples.tau[samples.usable]):
        return doubts
    kinds = [kind for kind, one in HYPOTHESES.items()
             if one.compare or (one.changes and (not one.fitted or kind in RIVALS))]
    found = diagnose_samples(model, [samples], kinds, (MASSES, *DRIVES))
    doubts |= {one.kind: one.advice for one in found.findings
               if one.kind not in FACTORS and not HYPOTHESES[one.kind].fitted}
    factor = _factors(model, found)
    unknown = np.array([share > MAX_LEFT for share in found.residual.values()])
    strength, names = np.std(found.compared[3], axis=0), np.array(model.velocity_names)
    factor[unknown] = 1.0
    if np.any(factor < 0.0):
        wrong = names[factor < 0.0]
        doubts['sign'] = HYPOTHESES['sign'].text.format(
            **words_of_factors(wrong, -np.ones(len(wrong))))
    most = np.where(strength < WEAK * np.max(strength), MAX_WEAK_FACTOR, MAX_JOINT_FACTOR)
    if _are_large(factor, most):
        # How large they are if the masses are right.
        found = diagnose_samples(model, [replace(samples, tau=samples.tau * np.sign(factor))],
                                 ('common_gain', 'gain', 'current'), DRIVES)
        factor = _factors(model, found)
        unsure = _factors(model, found, 'deviation') > UNSURE * np.abs(factor)
        kind = 'common_gain' if np.ptp(factor) == 0.0 else 'current'
        changed = (factor != 1.0) & (~unsure | (kind == 'common_gain'))
        if _are_large(np.where(changed, factor, 1.0), most):
            words = words_of_factors(names[changed], factor[changed])
            if len(rest := names[(factor != 1.0) & ~changed]):
                words['scale'] += f' (the factors of {listed(rest)} are not known)'
            doubts[kind] = HYPOTHESES[kind].text.format(**words)
    return doubts


def _are_large(factor: np.ndarray, most: np.ndarray) -> bool:
    """Return whether factors are no errors of the masses; ``most``: of each joint, (nv,)."""
    size = np.abs(np.log(np.abs(factor)))
    return bool(np.median(size) > np.log(MAX_FACTOR) or np.any(size > np.log(most)))


def _factors(model: Model, found: Diagnosis, label: str = 'value') -> np.ndarray:
    """Return the factors of the efforts, (nv,), that findings contain, or their deviations."""
    factor = np.ones(model.nv)
    for one in found.findings:
        if one.kind in FACTORS:
            own = [model.velocity_names.index(name) for name in one.joints]
            factor[own] *= np.asarray(getattr(one, label) or 0.0, float)
    return factor
