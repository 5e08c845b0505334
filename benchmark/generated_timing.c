/*
 * Copyright 2026 The rbd_ros authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Times generated functions: prints the shortest time of a call, ns, over many short runs. The
 * package has the prefix `timed`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "timed_dynamics.h"

#define STATES 64
#define RUNS 300
#define N TIMED_NV

static double q[STATES][TIMED_NQ], v[STATES][N], x[STATES][N], A[N * N], B[N * N], C[N * N];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void call(int function, int k)
{
    switch (function) {
    case 0: timed_inverse_dynamics(q[k], v[k], x[k], A); break;
    case 1: timed_forward_dynamics(q[k], v[k], x[k], A); break;
    case 2: timed_inverse_dynamics_derivatives(q[k], v[k], x[k], A, B, C); break;
    default: timed_forward_dynamics_derivatives(q[k], v[k], x[k], A, B, C);
    }
}

int main(void)
{
    double best[4] = {1e18, 1e18, 1e18, 1e18};
    int run, function, k, i;
    for (k = 0; k < STATES; ++k) {
        for (i = 0; i < TIMED_NQ; ++i)
            q[k][i] = 6.0 * rand() / RAND_MAX - 3.0;
        for (i = 0; i < N; ++i) {
            v[k][i] = 2.0 * rand() / RAND_MAX - 1.0;
            x[k][i] = 2.0 * rand() / RAND_MAX - 1.0;
        }
    }
    for (run = 0; run < RUNS; ++run)
        for (function = 0; function < 4; ++function) {
            double t = now();
            for (k = 0; k < STATES; ++k)
                call(function, k);
            t = (now() - t) / STATES;
            if (t < best[function])
                best[function] = t;
        }
    printf("%.1f %.1f %.1f %.1f\n", best[0], best[1], best[2], best[3]);
    return 0;
}
