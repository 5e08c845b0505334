// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
// Stand-in for handles of ros2_control, as of the major version ROS2_CONTROL: 4 (Jazzy), 5 (Kilted),
// 6 (Lyrical and rolling). A locked handle can be neither read nor written, as when another thread
// has its mutex.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace hardware_interface
{

class Handle
{
public:
    [[deprecated("Use InterfaceDescription")]]
    Handle(const std::string &, const std::string &, double *) = delete;

    explicit Handle(const std::string &prefix_name, const std::string &interface_name,
                    const std::string & = "double", const std::string & = "")
    : prefix_name_(prefix_name), interface_name_(interface_name),
      name_(prefix_name + "/" + interface_name)
    {
    }

    virtual ~Handle() = default;
    const std::string &get_name() const { return name_; }
    const std::string &get_prefix_name() const { return prefix_name_; }
    const std::string &get_interface_name() const { return interface_name_; }

    template <class T = double>
    [[nodiscard]] std::optional<T> get_optional() const
    {
        return locked ? std::nullopt : std::optional<T>(value_);
    }

    template <class T>
    [[nodiscard]] bool set_value(const T &value)
    {
        if (!locked)
            value_ = value;
        return !locked;
    }

#if ROS2_CONTROL < 5
    [[deprecated("Use std::optional<T> get_optional()")]]
    double get_value() const { return value_; }
#endif

    bool locked = false;

private:
    std::string prefix_name_, interface_name_, name_;
    double value_ = std::numeric_limits<double>::quiet_NaN();
};

class StateInterface : public Handle
{
public:
    using Handle::Handle;
    using SharedPtr = std::shared_ptr<StateInterface>;
    using ConstSharedPtr = std::shared_ptr<const StateInterface>;
};

class CommandInterface : public Handle
{
public:
    using Handle::Handle;
    CommandInterface(const CommandInterface &) = delete;
    CommandInterface(CommandInterface &&) = default;
    using SharedPtr = std::shared_ptr<CommandInterface>;
};

template <class Interface>
class Loaned
{
public:
    explicit Loaned(std::shared_ptr<Interface> one) : one_(one) {}
    Loaned(const Loaned &) = delete;
    Loaned(Loaned &&) = default;
    const std::string &get_name() const { return one_->get_name(); }

    template <class T = double>
    [[nodiscard]] std::optional<T> get_optional(unsigned int = 10) const
    {
        return one_->template get_optional<T>();
    }

    template <class T>
    [[nodiscard]] bool set_value(const T &value, unsigned int = 10)
    {
        return one_->set_value(value);
    }

#if ROS2_CONTROL < 6
    [[deprecated("Use std::optional<T> get_optional()")]]
    double get_value() const { return get_optional().value(); }
#endif

private:
    std::shared_ptr<Interface> one_;
};

using LoanedCommandInterface = Loaned<CommandInterface>;
using LoanedStateInterface = Loaned<const StateInterface>;

}  // namespace hardware_interface
