# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Closed forms of the mechanisms in urdf/, with angles in the x-z plane measured from the x axis.

The joints of these robots are 0 in the pose that their files describe; functions that end in
``_joints`` return positions of joints by name.

"""

import numpy as np


def angle_of(vector):
    """Return the angle of a vector (x, z)."""
    return np.arctan2(vector[1], vector[0])


def direction(angle):
    """Return the unit vector (x, z) at an angle."""
    return np.array([np.cos(angle), np.sin(angle)])


def wrapped(angle):
    """Return an angle between -pi and pi."""
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def third_corner(a, b, length_a, length_b, side):
    """Return the point at two distances from two points, left (1) or right (-1) of a to b."""
    along = np.subtract(b, a)
    d = np.hypot(*along)
    x = (length_a ** 2 - length_b ** 2 + d ** 2) / (2.0 * d)
    y = side * np.sqrt(length_a ** 2 - x ** 2)
    return a + (x * along + y * np.array([-along[1], along[0]])) / d


# -- The four-bar: crank a, coupler b, rocker c, ground d from the crank's axis to the rocker's.
A, B, C = 0.2, 0.5, 0.4
GROUND = np.array([0.5, -0.2])


def freudenstein(theta, dtheta=0.0, ddtheta=0.0):
    """
    Return angle, velocity and acceleration of the rocker for those of the crank.

    Freudenstein's equation, with angles theta and phi from the ground link:
    K1 cos(phi) - K2 cos(theta) + K3 = cos(theta - phi).

    """
    tilt, d = angle_of(GROUND), np.hypot(*GROUND)
    K1, K2, K3 = d / A, d / C, (A ** 2 - B ** 2 + C ** 2 + d ** 2) / (2.0 * A * C)
    t = theta - tilt
    # sin(t) sin(phi) + (cos(t) - K1) cos(phi) = K3 - K2 cos(t)
    sine, cosine, right = np.sin(t), np.cos(t) - K1, K3 - K2 * np.cos(t)
    phi = np.arctan2(sine, cosine) - np.arccos(right / np.hypot(sine, cosine))
    by_t = K2 * np.sin(t) + np.sin(t - phi)
    by_phi = -K1 * np.sin(phi) - np.sin(t - phi)
    ratio = -by_t / by_phi
    change = -(K2 * np.cos(t) + np.cos(t - phi) - 2.0 * ratio * np.cos(t - phi)
               + ratio ** 2 * (np.cos(t - phi) - K1 * np.cos(phi))) / by_phi
    return wrapped(phi + tilt), ratio * dtheta, ratio * ddtheta + change * dtheta ** 2


def four_bar_joints(crank):
    """Return the positions of all joints for that of the crank, which points up at 0."""
    theta = crank + 0.5 * np.pi
    rocker = freudenstein(theta)[0]
    coupler = angle_of(GROUND + C * direction(rocker) - A * direction(theta))
    return {'crank': crank, 'coupler': wrapped(coupler - crank),
            'rocker': wrapped(rocker - 0.5 * np.pi)}


# -- The slider-crank. ----------------------------------------------------------------------------
R, ROD = 0.1, 0.26


class SliderCrank:
    """
    The slider-crank as one equation of motion, M a + 1/2 M' v^2 + g = tau.

    ``crank``, ``rod`` and ``slider`` are (mass, distance of the centre of mass along the link,
    moment of inertia about it); all centres lie on the lines between the hinges.

    """

    def __init__(self, crank, rod, slider, gravity=9.81):
        self.crank, self.rod, self.slider, self.gravity = crank, rod, slider, gravity

    @staticmethod
    def slider_position(theta):
        """Return the distance of the slider from the crank's axis."""
        return R * np.cos(theta) + np.sqrt(ROD ** 2 - (R * np.sin(theta)) ** 2)

    @staticmethod
    def _rod(theta):
        """Return the angle of the rod and its first two derivatives by theta."""
        psi = -np.arcsin(R * np.sin(theta) / ROD)
        first = -R * np.cos(theta) / (ROD * np.cos(psi))
        second = (R * np.sin(theta) / ROD + np.sin(psi) * first ** 2) / np.cos(psi)
        return psi, first, second

    def _points(self, theta):
        """Return mass, first and second derivative (x, z) of the rod's and slider's centres."""
        psi, first, second = self._rod(theta)
        e, n = direction(theta), direction(theta + 0.5 * np.pi)
        rod_e, rod_n = direction(psi), direction(psi + 0.5 * np.pi)
        for mass, along in ((self.rod[0], self.rod[1]), (self.slider[0], ROD)):
            yield (mass, R * n + along * first * rod_n,
                   -R * e + along * (second * rod_n - first ** 2 * rod_e))

    def mass(self, theta):
        """Return the reduced moment of inertia M(theta)."""
        m, s, moment = self.crank
        _, first, _ = self._rod(theta)
        return moment + m * s ** 2 + self.rod[2] * first ** 2 + sum(
            mass * (dp @ dp) for mass, dp, _ in self._points(theta))

    def mass_derivative(self, theta):
        """Return dM/dtheta; the Coriolis matrix is half of it, times the velocity."""
        _, first, second = self._rod(theta)
        return 2.0 * (self.rod[2] * first * second + sum(
            mass * (dp @ ddp) for mass, dp, ddp in self._points(theta)))

    def gravity_torque(self, theta):
        """Return the torque that holds the crank still."""
        m, s, _ = self.crank
        return self.gravity * (m * s * np.cos(theta) + sum(
            mass * dp[1] for mass, dp, _ in self._points(theta)))

    @classmethod
    def joints(cls, crank):
        """Return the positions of all joints for that of the crank, which points up at 0."""
        theta = crank + 0.5 * np.pi
        start = -np.arcsin(R / ROD)
        return {'crank': crank, 'rod': cls._rod(theta)[0] - start - crank,
                'slider': cls.slider_position(theta) - cls.slider_position(0.5 * np.pi)}


# -- The five-bar. --------------------------------------------------------------------------------
SHOULDERS = np.array([[-0.09, 0.0], [0.09, 0.0]])
UPPER, LOWER = np.array([[-0.15, 0.2], [0.15, 0.2]]), np.array([[0.24, 0.32], [-0.24, 0.32]])


def five_bar_tool(motors):
    """Return the elbows and the tool, (x, z) each, for the angles of both motors."""
    elbows = [s + np.hypot(*u) * direction(q + angle_of(u))
              for s, u, q in zip(SHOULDERS, UPPER, motors)]
    lengths = np.hypot(*LOWER.T)
    return elbows, third_corner(*elbows, *lengths, 1)


def five_bar_joints(motors):
    """Return the positions of all joints for those of the motors."""
    elbows, tool = five_bar_tool(motors)
    found = {}
    for side, elbow, lower, q in zip(('left', 'right'), elbows, LOWER, motors):
        found[f'{side}_shoulder'] = q
        found[f'{side}_elbow'] = wrapped(angle_of(tool - elbow) - angle_of(lower) - q)
    return found


def five_bar_jacobian(motors):
    """Return the velocities of the tool (x, z) per velocities of the motors."""
    elbows, tool = five_bar_tool(motors)
    rods = [tool - elbow for elbow in elbows]
    # The component along each rod is that of its elbow.
    right = [rod @ [-(e - s)[1], (e - s)[0]] for rod, e, s in zip(rods, elbows, SHOULDERS)]
    return np.linalg.solve(rods, np.diag(right))


# -- The delta. -----------------------------------------------------------------------------------
BASE, ARM, FOREARM, PLATFORM, HEIGHT = 0.2, 0.3, 0.75, 0.05, 0.6
YAWS = 2.0 * np.pi / 3.0 * np.arange(3)


def delta_motors(position):
    """Return the angles of the motors for the platform's position in the base's frame."""
    angles = []
    for yaw in YAWS:
        outward, across = (direction(yaw + turn) @ position[:2] for turn in (0.0, 0.5 * np.pi))
        # The lower end of the forearm from the motor's axis: | (x, y, z) - elbow | = FOREARM.
        x, y, z = outward + PLATFORM - BASE, across, position[2]
        right = x * x + y * y + z * z + ARM ** 2 - FOREARM ** 2
        angles.append(np.arctan2(-z, x) - np.arccos(right / (2.0 * ARM * np.hypot(x, z))))
    return np.array(angles)


def delta_jacobian(position):
    """Return the velocities of the platform per velocities of the motors."""
    rods, right = [], []
    for yaw, q in zip(YAWS, delta_motors(position)):
        outward = np.array([*direction(yaw), 0.0])
        elbow = (BASE + ARM * np.cos(q)) * outward - [0.0, 0.0, ARM * np.sin(q)]
        moves = -ARM * np.sin(q) * outward - [0.0, 0.0, ARM * np.cos(q)]
        rods.append(position + PLATFORM * outward - elbow)
        right.append(rods[-1] @ moves)
    return np.linalg.solve(rods, np.diag(right))


def delta_platform(position):
    """Return the positions of the joints that move the platform."""
    return dict(zip(('platform_x', 'platform_y', 'platform_z'), position + [0.0, 0.0, HEIGHT]))
