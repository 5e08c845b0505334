# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Doubts about recordings that a fit of the robot's parameters would not notice."""

from dataclasses import replace

import numpy as np
from rbd_ros.identification.diagnosis.competition import MASSES
from rbd_ros.identification.diagnosis.detectors import beyond_limits
from rbd_ros.identification.diagnosis.diagnose import diagnose_samples
from rbd_ros.identification.diagnosis.hypotheses import FACTORS, HYPOTHESES, words_of_factors
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples

# What a fit of friction and rotors explains.
DRIVES = ('rotor', 'torque_offset')
RIVALS = ('payload', 'gravity_direction', 'zero_offset', 'spring')
# Factors of all joints within 1/FACTOR ... FACTOR may be errors of the masses; those of a single
# joint within the second one, or the third if its torques are less than a share of the largest
# ones of the URDF: errors of light links change them much more.
MAX_FACTOR, MAX_JOINT_FACTOR, MAX_WEAK_FACTOR, WEAK = 1.5, 1.8, 5.0, 0.1
ROUNDS = 4      # How often large factors are undone.
MAX_LEFT = 0.5  # Largest share of the RMS efforts of a joint whose factor is known.


def effort_doubts(model: Model, samples: Samples) -> dict[str, str]:
    """
    Return why efforts look like other quantities than the torques of the joints, by kind.

    A fit adapts masses to any factor of the efforts, so these are compared with the description.
    What a fit finds by itself competes, but is no doubt; nor are factors that may be errors of the
    masses.

    """
    limits = beyond_limits(model, np.abs(samples.tau))
    doubts = {'limits': limits.text} if limits else {}
    if not np.any(samples.usable):
        return doubts
    kinds = [kind for kind, one in HYPOTHESES.items()
             if one.compare or one.changes and (not one.fitted or kind in RIVALS)]
    factor = np.ones(model.nv)
    for _ in range(ROUNDS):
        # Errors of the masses are in proportion to the torques, once factors are undone.
        found = diagnose_samples(model, [replace(samples, tau=samples.tau / factor)], kinds,
                                 (MASSES, *DRIVES))
        more, sign = np.ones(model.nv), np.ones(model.nv)
        for one in found.findings:
            own = [model.velocity_names.index(name) for name in one.joints]
            if one.kind in FACTORS:
                sign[own] *= np.sign(one.value)
                more[own] *= np.abs(one.value)
        if np.abs(np.log(usual := np.median(more))) > np.log(MAX_FACTOR):
            more[:] = usual
        factor = factor * more
        if np.all(np.abs(np.log(more)) < np.log(MAX_FACTOR)):
            break
    doubts |= {one.kind: one.advice for one in found.findings
               if one.kind not in FACTORS and not HYPOTHESES[one.kind].fitted}
    factor *= sign
    factor[[share > MAX_LEFT for share in found.residual.values()]] = 1.0
    names = np.array(model.velocity_names)
    if np.any(factor < 0.0):
        doubts['sign'] = wrong_sign_message(names[factor < 0.0])
    strength = np.std(found.compared[3], axis=0)
    size = np.abs(np.log(np.abs(factor)))
    most = np.where(strength < WEAK * np.max(strength), MAX_WEAK_FACTOR, MAX_JOINT_FACTOR)
    if np.median(size) > np.log(MAX_FACTOR) or np.any(size > np.log(most)):
        kind = 'common_gain' if np.ptp(factor) == 0.0 else 'current'
        changed = factor != 1.0
        doubts[kind] = HYPOTHESES[kind].text.format(**words_of_factors(
            names[changed], np.abs(factor[changed])))
    return doubts


def wrong_sign_message(names: list[str] | np.ndarray) -> str:
    """Return the message for joints whose efforts have the wrong sign."""
    return HYPOTHESES['sign'].text.format(**words_of_factors(names, -np.ones(len(names))))
