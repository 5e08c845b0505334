// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
// Hands vectors of equal numbers from one thread to another: none may be torn, old or lost.
#include <cstdio>
#include <thread>

#include "law.hpp"

using namespace r_controller;

int main()
{
    constexpr int LAST = 200000;
    static Mailbox<Vector> mailbox;
    std::thread writer([] {
        for (int k = 1; k <= LAST; ++k)
            mailbox.write(each([&](std::size_t) { return double(k); }));
    });
    int torn = 0, old = 0;
    double before = 0.0;
    while (before < LAST) {
        const Vector &x = mailbox.read();
        for (std::size_t i = 1; i < N; ++i)
            torn += x[i] != x[0];
        old += x[0] < before;
        before = x[0];
    }
    writer.join();
    std::printf("%d torn, %d old\n", torn, old);
    return 0;
}
