// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
// Stand-in for pluginlib: a function that makes the class.
#pragma once

#define PLUGINLIB_EXPORT_CLASS(Class, Base) \
    Base *make_plugin(); \
    Base *make_plugin() { return new Class; }
