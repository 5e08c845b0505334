// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
// Drives a generated controller as a controller manager does, for ctypes; see test/control_rig.py.
// As a program (MAIN) it counts what update() must not do, and prints its times.
#include <cstring>
#include <map>

#include "controller_interface/chainable_controller_interface.hpp"

using namespace controller_interface;
ChainableControllerInterface *make_plugin();

namespace
{

std::map<std::string, rclcpp::Value> overrides;
std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node;
std::unique_ptr<ChainableControllerInterface> controller;
std::vector<CommandInterface::SharedPtr> commands, references;
std::vector<StateInterface::SharedPtr> states, results;
std::string text;

int set(const char *name, const rclcpp::Value &value)
{
    if (!node) {
        overrides[name] = value;
        return 1;
    }
    const auto result = node->set_parameter({name, value});
    text = result.reason;
    return result.successful;
}

template <class Interfaces>
void write(const Interfaces &all, const double *values)
{
    for (std::size_t k = 0; k < all.size(); ++k)
        static_cast<void>(all[k]->set_value(values[k]));
}

template <class Interfaces>
void read(const Interfaces &all, double *values)
{
    for (std::size_t k = 0; k < all.size(); ++k)
        values[k] = all[k]->get_optional().value();
}

template <class Interfaces>
std::string joined(const Interfaces &all)
{
    std::string names;
    for (const auto &one : all)
        names += one->get_name() + "\n";
    return names;
}

template <class Interfaces>
void make(Interfaces &all, const InterfaceConfiguration &wanted)
{
    all.clear();
    for (const auto &name : wanted.names) {
        const auto cut = name.rfind('/');
        all.push_back(std::make_shared<typename std::decay_t<decltype(*all[0])>>(
            name.substr(0, cut), name.substr(cut + 1)));
    }
}

// The interfaces of these names, as a controller manager finds them at each activation.
template <class Loaned, class Interfaces>
std::vector<Loaned> loaned(const Interfaces &all, const InterfaceConfiguration &wanted)
{
    std::vector<Loaned> found;
    for (const auto &name : wanted.names)
        for (const auto &one : all)
            if (one->get_name() == name)
                found.emplace_back(one);
    return found;
}

int code(CallbackReturn found) { return found == CallbackReturn::SUCCESS; }

}  // namespace

extern "C" {

int set_bool(const char *name, int value) { return set(name, value != 0); }
int set_number(const char *name, double value) { return set(name, value); }
int set_text(const char *name, const char *value) { return set(name, std::string(value)); }
int set_numbers(const char *name, const double *values, int count)
{
    return set(name, std::vector<double>(values, values + count));
}
int set_texts(const char *name, const char *const *values, int count)
{
    return set(name, std::vector<std::string>(values, values + count));
}

int create(const char *name, unsigned int rate)
{
    controller.reset();
    node = std::make_shared<rclcpp_lifecycle::LifecycleNode>(name, overrides);
    overrides.clear();
    controller.reset(make_plugin());
    const int good = code(controller->init(node, rate));
    if (!good)
        controller.reset(), node.reset();
    return good;
}

void destroy() { controller.reset(); node.reset(); overrides.clear(); }

int configure()
{
    if (!code(controller->on_configure(rclcpp_lifecycle::State())))
        return 0;
    references = controller->export_reference_interfaces();
    results = controller->export_state_interfaces();
    make(commands, controller->command_interface_configuration());
    make(states, controller->state_interface_configuration());
    return 1;
}

int activate(int chained)
{
    controller->assign_interfaces(
        loaned<LoanedCommandInterface>(commands, controller->command_interface_configuration()),
        loaned<LoanedStateInterface>(states, controller->state_interface_configuration()));
    return controller->set_chained_mode(chained != 0) && code(controller->on_activate(rclcpp_lifecycle::State()));
}

int deactivate() { return code(controller->on_deactivate(rclcpp_lifecycle::State())); }
void write_states(const double *values) { write(states, values); }
void write_references(const double *values) { write(references, values); }
void read_references(double *values) { read(references, values); }
void read_commands(double *values) { read(commands, values); }
void read_results(double *values) { read(results, values); }
int update(double period)
{
    return controller->update({}, rclcpp::Duration(period)) == return_type::OK;
}

// Locks or unlocks an interface of the first joint: 'c'ommand, 's'tate, 'r'eference, 'o'utput.
void lock(char kind, int locked)
{
    if (kind == 'c')
        commands[0]->locked = locked;
    else if (kind == 's')
        states[0]->locked = locked;
    else if (kind == 'r')
        references[0]->locked = locked;
    else
        results[0]->locked = locked;
}

const char *reason() { return text.c_str(); }
const char *logged() { return rclcpp::logged.c_str(); }
int logs() { return static_cast<int>(rclcpp::logs); }
const char *names(char kind)
{
    text = kind == 'c' ? joined(commands) : kind == 's' ? joined(states)
        : kind == 'r' ? joined(references) : joined(results);
    return text.c_str();
}

}  // extern "C"

#ifdef MAIN
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

static std::size_t allocations = 0, mutexes = 0;

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

// In each mode: follow a motion, with changes of mode, payload, faults and limits.
int main()
{
    const double period = 1e-3;
    set_texts("state_interfaces", std::vector{"position", "velocity", "effort"}.data(), 3);
    set_number("effort_rate_limit", 1e4);
    set_bool("friction", 1);
    set_bool("springs", 1);
    if (!create("arm", 1000) || !configure())
        return 1;
    const std::size_t n = commands.size();
    std::vector<double> x(3 * n), r(4 * n);
    std::size_t counts[3] = {};
    for (const char *mode : {"gravity", "pd_gravity", "computed_torque", "impedance"}) {
        std::vector<double> times;
        set_text("mode", mode);
        set_number("payload.mass", 0.001 * double(std::strlen(mode)));
        for (int k = 0; k < 20000; ++k) {
            const double t = period * k;
            for (std::size_t i = 0; i < n; ++i) {
                // Towards the end, into the zones before limits.
                const double size = k < 18000 ? 0.5 : 4.0, w = k < 18000 ? 1.0 : 0.3;
                r[i] = x[i] = size * std::sin(w * t + double(i));
                r[n + i] = x[n + i] = size * w * std::cos(w * t + double(i));
            }
            if (k % 18000 == 0) {
                write_states(x.data());
                activate(1);
            }
            x[0] = k % 100 == 50 ? std::nan("") : x[0];
            write_states(x.data());
            write_references(r.data());
            const std::size_t before[3] = {allocations, mutexes, rclcpp::logs};
            const auto start = std::chrono::steady_clock::now();
            const int good = update(period);
            const std::chrono::duration<double, std::micro> took =
                std::chrono::steady_clock::now() - start;
            counts[0] += allocations - before[0];
            counts[1] += mutexes - before[1];
            counts[2] += rclcpp::logs - before[2];
            times.push_back(took.count());
            if (!good)
                return 2;
        }
        std::sort(times.begin(), times.end());
        std::fprintf(stderr, "%s: p50 %.2f us, p99.9 %.2f us\n", mode, times[times.size() / 2],
                     times[times.size() * 999 / 1000]);
    }
    const std::size_t before[2] = {allocations, mutexes};
    std::mutex mutex;
    mutex.lock();
    mutex.unlock();
    std::vector<double> *volatile one = new std::vector<double>;
    delete one;
    std::printf("%zu allocations, %zu locks, %zu logs; a vector and a mutex: %zu and %zu\n",
                counts[0], counts[1], counts[2], allocations - before[0], mutexes - before[1]);
    return 0;
}
#endif
