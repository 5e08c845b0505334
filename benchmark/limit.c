// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
//
// Inverse dynamics of a tree of revolute joints, WIDTH states side by side, by the recursion of
// rbd_ros/kernels/newton_euler.py: what a person reaches who writes it in C for one kind of robot.

#include <math.h>

#ifndef WIDTH
#define WIDTH 8
#endif
#ifndef MOST
#define MOST 16  // joints
#endif
#ifndef CHAIN
#define CHAIN 0  // 1: each body is attached to the one before
#endif

typedef double lanes __attribute__((vector_size(8 * WIDTH)));
typedef long long whole __attribute__((vector_size(8 * WIDTH)));
typedef struct { lanes x, y, z; } vector;

// The columns of the rotation in the parent at rest, the position there, Sigma (xx, yy, zz, xy, xz,
// yz), h, m and the rotor's inertia, all about the origin of the body, whose z axis is the joint's;
// the number of the parent, 0 for the ground; and 1 if a body other than the next one is attached.
// Bodies come depth first, the ground before them.
typedef struct { double R[9], r[3], sigma[6], h[3], m, armature, parent, branches; } body;
typedef struct { vector omega, alpha, origin, x, y, z; } motion;

// Angles up to 1e6 rad, as rbd_ros/kernels/compiled_sines.py does it.
static inline void turn(lanes angle, lanes *c, lanes *s)
{
  const double to_whole = 0x1.8p52;
  lanes shifted = angle * M_2_PI + to_whole, quarters = shifted - to_whole;
  lanes r = angle - quarters * 1.5707963267341256;
  r = r - quarters * 6.077100506303966e-11 - quarters * 2.0222662487959506e-21;
  lanes z = r * r;
  lanes S = ((((1.5896230131405245e-10 * z - 2.5050747762441093e-08) * z + 2.755731362138332e-06)
    * z - 1.9841269829589533e-04) * z + 8.333333333322118e-03) * z - 0.1666666666666663;
  lanes C = ((((-1.1358536481938269e-11 * z + 2.0875700841205953e-09) * z - 2.755731417929101e-07)
    * z + 2.4801587288851683e-05) * z - 1.3888888888873056e-03) * z + 0.041666666666666595;
  lanes sine = r + r * z * S, cosine = 1.0 - 0.5 * z + z * z * C;
  whole k = (whole)shifted, odd = -(k & 1);
  *c = (lanes)((((whole)cosine & ~odd) | ((whole)sine & odd)) ^ ((k + 1) >> 1 << 63));
  *s = (lanes)((((whole)sine & ~odd) | ((whole)cosine & odd)) ^ (k >> 1 << 63));
}

static inline vector unrotate(vector x, vector y, const double *z, vector a)
{
  return (vector){
    x.x * a.x + x.y * a.y + x.z * a.z, y.x * a.x + y.y * a.y + y.z * a.z,
    z[0] * a.x + z[1] * a.y + z[2] * a.z};
}

static inline vector rotate(vector x, vector y, const double *z, vector a)
{
  return (vector){
    x.x * a.x + y.x * a.y + z[0] * a.z, x.y * a.x + y.y * a.y + z[1] * a.z,
    x.z * a.x + y.z * a.y + z[2] * a.z};
}

static inline vector sum(vector a, vector b)
{
  return (vector){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline void recursion(
  int n, const body *bodies, const double *gravity, const lanes *q, const lanes *v,
  const lanes *a, lanes *tau)
{
  vector X[MOST + 1], Y[MOST + 1], force[MOST + 1], moment[MOST + 1];
  motion kept[MOST + 1];
  lanes c[MOST + 1], s[MOST + 1], no = {0};
  vector omega = {no, no, no}, alpha = omega, x = omega, y = omega, z = omega;
  vector origin = {no - gravity[0], no - gravity[1], no - gravity[2]};
  kept[0] = (motion){omega, alpha, origin, x, y, z};
  for (int i = 1; i <= n; i++) {
    turn(q[i - 1], c + i, s + i);
  }
  for (int i = 1; i <= n; i++) {
    const double *R = bodies[i].R, *r = bodies[i].r, *S = bodies[i].sigma, *h = bodies[i].h;
    const double m = bodies[i].m;
    const int p = CHAIN ? i - 1 : (int)bodies[i].parent;
    if (p != i - 1) {
      omega = kept[p].omega, alpha = kept[p].alpha, origin = kept[p].origin;
      x = kept[p].x, y = kept[p].y, z = kept[p].z;
    }
    X[i] = (vector){
      c[i] * R[0] + s[i] * R[3], c[i] * R[1] + s[i] * R[4], c[i] * R[2] + s[i] * R[5]};
    Y[i] = (vector){
      c[i] * R[3] - s[i] * R[0], c[i] * R[4] - s[i] * R[1], c[i] * R[5] - s[i] * R[2]};
    origin.x += x.x * r[0] + y.x * r[1] + z.x * r[2];
    origin.y += x.y * r[0] + y.y * r[1] + z.y * r[2];
    origin.z += x.z * r[0] + y.z * r[1] + z.z * r[2];
    origin = unrotate(X[i], Y[i], R + 6, origin);
    omega = unrotate(X[i], Y[i], R + 6, omega);
    alpha = unrotate(X[i], Y[i], R + 6, alpha);
    alpha.x += omega.y * v[i - 1];
    alpha.y -= omega.x * v[i - 1];
    alpha.z += a[i - 1];
    omega.z += v[i - 1];
    // The columns of A = [alpha] + [omega]^2: the point at r accelerates by A r + origin.
    lanes xx = omega.x * omega.x, yy = omega.y * omega.y, zz = omega.z * omega.z;
    lanes xy = omega.x * omega.y, xz = omega.x * omega.z, yz = omega.y * omega.z;
    x = (vector){-yy - zz, xy + alpha.z, xz - alpha.y};
    y = (vector){xy - alpha.z, -xx - zz, yz + alpha.x};
    z = (vector){xz + alpha.y, yz - alpha.x, -xx - yy};
    if (!CHAIN && bodies[i].branches != 0.0) {
      kept[i] = (motion){omega, alpha, origin, x, y, z};
    }
    force[i].x = x.x * h[0] + y.x * h[1] + z.x * h[2] + m * origin.x;
    force[i].y = x.y * h[0] + y.y * h[1] + z.y * h[2] + m * origin.y;
    force[i].z = x.z * h[0] + y.z * h[1] + z.z * h[2] + m * origin.z;
    moment[i].x = x.z * S[3] - x.y * S[4] + y.z * S[1] - z.y * S[2] + (zz - yy) * S[5]
      + h[1] * origin.z - h[2] * origin.y;
    moment[i].y = y.x * S[5] - y.z * S[3] + z.x * S[2] - x.z * S[0] + (xx - zz) * S[4]
      + h[2] * origin.x - h[0] * origin.z;
    moment[i].z = z.y * S[4] - z.x * S[5] + x.y * S[0] - y.x * S[1] + (yy - xx) * S[3]
      + h[0] * origin.y - h[1] * origin.x;
  }
  vector f = force[n], t = moment[n];
  for (int i = n; i > 0; i--) {
    const double *R = bodies[i].R, *r = bodies[i].r;
    const int p = CHAIN ? i - 1 : (int)bodies[i].parent;
    tau[i - 1] = t.z + bodies[i].armature * a[i - 1];
    if (p > 0) {
      f = rotate(X[i], Y[i], R + 6, f);
      t = rotate(X[i], Y[i], R + 6, t);
      t.x += moment[p].x + r[1] * f.z - r[2] * f.y;
      t.y += moment[p].y + r[2] * f.x - r[0] * f.z;
      t.z += moment[p].z + r[0] * f.y - r[1] * f.x;
      f = sum(f, force[p]);
    }
    if (p != i - 1) {
      force[p] = f, moment[p] = t;
      f = force[i - 1], t = moment[i - 1];
    }
  }
}

// The states are side by side already: entry i of state k is in Q[k / WIDTH][i][k % WIDTH].
void inverse_dynamics(
  int n, const body *bodies, const double *gravity, const lanes *Q, const lanes *V,
  const lanes *A, lanes *Tau, long count)
{
  for (long k = 0; k < count; k += WIDTH, Q += n, V += n, A += n, Tau += n) {
    recursion(n, bodies, gravity, Q, V, A, Tau);
  }
}

// How many products with sums each: the processor's own speed, nothing read or written.
double products(long count)
{
  lanes x[16];
#pragma GCC unroll 16
  for (int k = 0; k < 16; k++) {
    x[k] = (lanes){0} + k;
  }
  for (long i = 0; i < count; i += 16) {
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
      x[k] = x[k] * x[k] + x[k];
      __asm__ ("" : "+x" (x[k]));
    }
  }
  double sum = 0.0;
#pragma GCC unroll 16
  for (int k = 0; k < 16; k++) {
    sum += x[k][0];
  }
  return sum;
}
