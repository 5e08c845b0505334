// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
// Counts what update() of a generated controller must not do, and prints its times; built with the
// controller of PACKAGE, against ros2_control or, with ROS2_CONTROL, its stand-in in test/.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "controller.cpp"

// Of this thread.
static thread_local std::size_t allocations = 0, mutexes = 0;

extern "C" {
void *__libc_malloc(std::size_t);

void *malloc(std::size_t size)
{
    ++allocations;
    return __libc_malloc(size);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static const auto real = reinterpret_cast<int (*)(pthread_mutex_t *)>(
        dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    ++mutexes;
    return real(mutex);
}
}

namespace
{

using namespace PACKAGE;
using hardware_interface::LoanedCommandInterface;
using hardware_interface::LoanedStateInterface;

template <class Interface>
std::vector<std::shared_ptr<Interface>> made(const InterfaceConfiguration &wanted)
{
    std::vector<std::shared_ptr<Interface>> found;
    for (const auto &name : wanted.names) {
        const auto cut = name.rfind('/');
        found.push_back(std::make_shared<Interface>(name.substr(0, cut), name.substr(cut + 1)));
    }
    return found;
}

template <class Loaned, class Interfaces>
std::vector<Loaned> loaned(const Interfaces &all)
{
    std::vector<Loaned> found;
    for (const auto &one : all)
#ifdef ROS2_CONTROL
        found.emplace_back(one);
#else
        found.emplace_back(one, nullptr);
#endif
    return found;
}

template <class Interfaces>
void write(const Interfaces &all, const std::vector<double> &values)
{
    for (std::size_t k = 0; k < all.size(); ++k)
        static_cast<void>(all[k]->set_value(values[k]));
}

template <class T>
void set(Controller &controller, const std::string &name, const T &value)
{
    controller.get_node()->set_parameter(rclcpp::Parameter(name, value));
}

}  // namespace

// In each mode: follow a motion, with changes of mode and payload, faults and limits.
int main(int count, char **words)
{
    const double period = 1e-3;
    const int steps = count > 1 ? std::atoi(words[1]) : 20000;
    Controller controller;
    const rclcpp_lifecycle::State none;
#ifdef ROS2_CONTROL
    controller.init(std::make_shared<rclcpp_lifecycle::LifecycleNode>(
        "arm", std::map<std::string, rclcpp::Value>{}), 1000);
#else
    rclcpp::init(count, words);
    ControllerInterfaceParams params;
    params.controller_name = "arm";
    params.controller_manager_update_rate = params.update_rate = 1000;
    params.node_options = controller.define_custom_node_options();
    controller.init(params);
#endif
    set(controller, "state_interfaces", Names{"position", "velocity", "effort"});
    set(controller, "effort_rate_limit", 1e4);
    set(controller, "compensation_limits", Numbers{10.0});
    set(controller, "friction", true);
    set(controller, "springs", true);
    if (controller.on_configure(none) != CallbackReturn::SUCCESS)
        return 1;
    const auto references = controller.export_reference_interfaces();
    const auto results = controller.export_state_interfaces();
    const auto commands = made<CommandInterface>(controller.command_interface_configuration());
    const auto states = made<StateInterface>(controller.state_interface_configuration());
    controller.assign_interfaces(loaned<LoanedCommandInterface>(commands),
                                 loaned<LoanedStateInterface>(states));
    controller.set_chained_mode(true);
    // As the controller manager does; without the permission, interruptions count, too.
    const sched_param priority{50};
    sched_setscheduler(0, SCHED_FIFO, &priority);
    std::vector<double> x(3 * N), r(4 * N);
    std::size_t counts[2] = {};
    for (const char *mode : {"gravity", "pd_gravity", "computed_torque", "impedance"}) {
        std::vector<double> times(static_cast<std::size_t>(steps));
        set(controller, "mode", std::string(mode));
        set(controller, "payload.mass", 0.001 * double(std::strlen(mode)));
        for (int k = 0; k < steps; ++k) {
            // In the last tenth, into the zones before limits.
            const bool far = k >= steps / 10 * 9;
            const double size = far ? 4.0 : 0.5, w = far ? 0.3 : 1.0, t = period * k;
            for (std::size_t i = 0; i < N; ++i) {
                r[i] = x[i] = size * std::sin(w * t + double(i));
                r[N + i] = x[N + i] = size * w * std::cos(w * t + double(i));
            }
            write(states, x);
            if (k % (steps / 10 * 9) == 0
                && controller.on_activate(none) != CallbackReturn::SUCCESS)
                return 2;
            x[0] = k % 100 == 50 ? std::nan("") : x[0];
            write(states, x);
            write(references, r);
            const std::size_t before[2] = {allocations, mutexes};
            const auto start = std::chrono::steady_clock::now();
            const auto result = controller.update(rclcpp::Time(), rclcpp::Duration::from_seconds(
                period));
            const std::chrono::duration<double, std::micro> took =
                std::chrono::steady_clock::now() - start;
            counts[0] += allocations - before[0];
            counts[1] += mutexes - before[1];
            times[static_cast<std::size_t>(k)] = took.count();
            if (result != return_type::OK)
                return 3;
        }
        std::sort(times.begin(), times.end());
        const auto share = [&](double part) { return times[std::size_t(part * (steps - 1))]; };
        std::printf("%s: p50 %.2f us, p99 %.2f us, p99.9 %.2f us\n", mode, share(0.5),
                    share(0.99), share(0.999));
    }
    const std::size_t before[2] = {allocations, mutexes};
    std::mutex mutex;
    mutex.lock();
    mutex.unlock();
    std::vector<double> *volatile one = new std::vector<double>;
    delete one;
    std::printf("%zu allocations, %zu locks; a vector and a mutex: %zu and %zu\n", counts[0],
                counts[1], allocations - before[0], mutexes - before[1]);
#ifdef ROS2_CONTROL
    std::printf("%zu logs\n", rclcpp::logs);
#endif
    return 0;
}
