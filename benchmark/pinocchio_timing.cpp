// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
//
// Times Pinocchio's functions as generated_timing.c does; the robot, as generated.py writes it, is
// read from standard input.
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace pinocchio;

static double now()
{
  return std::chrono::duration<double, std::nano>(
    std::chrono::steady_clock::now().time_since_epoch()).count();
}

template<int rows, int columns>
static Eigen::Matrix<double, rows, columns> read()
{
  Eigen::Matrix<double, rows, columns> x;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      std::cin >> x(i, j);
  return x;
}

static JointModel joint(const std::string & kind)
{
  const Eigen::Vector3d axis = read<3, 1>();
  const std::map<std::string, JointModel> known = {
    {"JointModelRX", JointModelRX()}, {"JointModelRY", JointModelRY()},
    {"JointModelRZ", JointModelRZ()}, {"JointModelPX", JointModelPX()},
    {"JointModelPY", JointModelPY()}, {"JointModelPZ", JointModelPZ()},
    {"JointModelRevoluteUnaligned", JointModelRevoluteUnaligned(axis)},
    {"JointModelPrismaticUnaligned", JointModelPrismaticUnaligned(axis)}};
  return known.at(kind);
}

int main()
{
  Model model;
  int joints;
  std::cin >> joints;
  for (int k = 1; k <= joints; ++k) {
    std::size_t parent;
    std::string kind;
    std::cin >> parent >> kind;
    const JointModel moves = joint(kind);
    const Eigen::Matrix3d R = read<3, 3>();
    const Eigen::Vector3d p = read<3, 1>();
    model.addJoint(parent, moves, SE3(R, p), std::to_string(k));
    const double mass = read<1, 1>()(0);
    const Eigen::Vector3d lever = read<3, 1>();
    model.inertias[k] = Inertia(mass, lever, Eigen::Matrix3d(read<3, 3>()));
  }
  Data data(model);
  std::vector<Eigen::VectorXd> q, v, x;
  for (int k = 0; k < 64; ++k) {
    q.push_back(3.0 * Eigen::VectorXd::Random(model.nq));
    v.push_back(Eigen::VectorXd::Random(model.nv));
    x.push_back(Eigen::VectorXd::Random(model.nv));
  }
  double best[4] = {1e18, 1e18, 1e18, 1e18};
  for (int run = 0; run < 300; ++run)
    for (int function = 0; function < 4; ++function) {
      double t = now();
      for (int k = 0; k < 64; ++k)
        switch (function) {
          case 0: rnea(model, data, q[k], v[k], x[k]); break;
          case 1: aba(model, data, q[k], v[k], x[k]); break;
          case 2: computeRNEADerivatives(model, data, q[k], v[k], x[k]); break;
          default: computeABADerivatives(model, data, q[k], v[k], x[k]);
        }
      t = (now() - t) / 64;
      if (t < best[function])
        best[function] = t;
    }
  std::printf("%.1f %.1f %.1f %.1f\n", best[0], best[1], best[2], best[3]);
}
