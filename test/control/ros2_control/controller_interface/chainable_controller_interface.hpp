// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
// Stand-in for controller_interface of ros2_control; what differs by version is in handle.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hardware_interface/handle.hpp"
#include "rclcpp/rclcpp.hpp"

namespace controller_interface
{

using CallbackReturn = rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface::CallbackReturn;
using hardware_interface::CommandInterface;
using hardware_interface::LoanedCommandInterface;
using hardware_interface::LoanedStateInterface;
using hardware_interface::StateInterface;

enum class return_type : std::uint8_t { OK = 0, ERROR = 1 };
enum class interface_configuration_type : std::uint8_t { ALL = 0, INDIVIDUAL = 1, NONE = 2 };

struct InterfaceConfiguration
{
    interface_configuration_type type = interface_configuration_type::NONE;
    std::vector<std::string> names = {};
};

class ChainableControllerInterface : public rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface
{
public:
    CallbackReturn init(std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node, unsigned int rate)
    {
        node_ = node;
        rate_ = rate;
        return on_init();
    }

    virtual CallbackReturn on_init() = 0;
    virtual InterfaceConfiguration command_interface_configuration() const = 0;
    virtual InterfaceConfiguration state_interface_configuration() const = 0;

    void assign_interfaces(std::vector<LoanedCommandInterface> &&commands,
                           std::vector<LoanedStateInterface> &&states)
    {
        command_interfaces_ = std::move(commands);
        state_interfaces_ = std::move(states);
    }

    std::vector<CommandInterface::SharedPtr> export_reference_interfaces()
    {
        return on_export_reference_interfaces_list();
    }

    std::vector<StateInterface::SharedPtr> export_state_interfaces()
    {
        return on_export_state_interfaces_list();
    }

    bool set_chained_mode(bool chained)
    {
        const bool accepted = on_set_chained_mode(chained);
        chained_ = accepted ? chained : chained_;
        return accepted;
    }

    return_type update(const rclcpp::Time &time, const rclcpp::Duration &period)
    {
        if (!chained_ && update_reference_from_subscribers(time, period) != return_type::OK)
            return return_type::ERROR;
        return update_and_write_commands(time, period);
    }

    std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() { return node_; }
    std::shared_ptr<const rclcpp_lifecycle::LifecycleNode> get_node() const { return node_; }
    unsigned int get_update_rate() const { return rate_; }
    bool is_in_chained_mode() const { return chained_; }

    template <class T>
    auto auto_declare(const std::string &name, const T &value)
    {
        return node_->has_parameter(name) ? node_->get_parameter(name).template get_value<T>()
                                          : node_->template declare_parameter<T>(name, value);
    }

protected:
    virtual std::vector<StateInterface::SharedPtr> on_export_state_interfaces_list() { return {}; }
    virtual std::vector<CommandInterface::SharedPtr> on_export_reference_interfaces_list()
    {
        return {};
    }
    virtual bool on_set_chained_mode(bool) { return true; }
    virtual return_type update_reference_from_subscribers(
        const rclcpp::Time &, const rclcpp::Duration &) = 0;
    virtual return_type update_and_write_commands(
        const rclcpp::Time &, const rclcpp::Duration &) = 0;

    std::vector<LoanedCommandInterface> command_interfaces_;
    std::vector<LoanedStateInterface> state_interfaces_;

private:
    std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node_;
    unsigned int rate_ = 0;
    bool chained_ = false;
};

}  // namespace controller_interface
