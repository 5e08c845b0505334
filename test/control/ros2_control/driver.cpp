// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
// Drives a generated controller as a controller manager does, for ctypes; see test/rigs/control_rig.py.
#include <map>

#include "controller_interface/chainable_controller_interface.hpp"

using namespace controller_interface;
using rclcpp_lifecycle::State;
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
    if (!code(controller->on_configure(State())))
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
    return controller->set_chained_mode(chained != 0) && code(controller->on_activate(State()));
}

int deactivate() { return code(controller->on_deactivate(State())); }
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
const char *names(char kind)
{
    text = kind == 'c' ? joined(commands) : kind == 's' ? joined(states)
        : kind == 'r' ? joined(references) : joined(results);
    return text.c_str();
}

}  // extern "C"
