// Copyright 2026 The rbd_ros authors
// SPDX-License-Identifier: Apache-2.0
// Stand-in for the parts of rclcpp, rclcpp_lifecycle and rcl_interfaces that a controller uses.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace rcl_interfaces::msg
{
struct SetParametersResult { bool successful = false; std::string reason; };
}  // namespace rcl_interfaces::msg

namespace rclcpp
{

class Time {};

class Duration
{
public:
    explicit Duration(double seconds) : seconds_(seconds) {}
    static Duration from_seconds(double seconds) { return Duration(seconds); }
    double seconds() const { return seconds_; }

private:
    double seconds_;
};

class Logger {};

// What was logged last, and how often something was.
inline std::string logged;
inline std::size_t logs = 0;

inline void log(const char *format, ...) __attribute__((format(printf, 1, 2)));
inline void log(const char *format, ...)
{
    char text[1000];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    logged = text;
    ++logs;
}
#define RCLCPP_ERROR(logger, ...) (static_cast<void>(logger), rclcpp::log(__VA_ARGS__))

using Value = std::variant<bool, double, std::string, std::vector<double>, std::vector<std::string>>;

class Parameter
{
public:
    Parameter(const std::string &name, const Value &value) : name_(name), value_(value) {}
    const std::string &get_name() const { return name_; }
    const Value &value() const { return value_; }

    template <class T>
    T get_value() const
    {
        if (!std::holds_alternative<T>(value_))
            throw std::runtime_error("parameter '" + name_ + "' has another type");
        return std::get<T>(value_);
    }

private:
    std::string name_;
    Value value_;
};

namespace node_interfaces
{

struct OnSetParametersCallbackHandle
{
    using SharedPtr = std::shared_ptr<OnSetParametersCallbackHandle>;
    std::function<rcl_interfaces::msg::SetParametersResult(const std::vector<Parameter> &)> call;
};

struct PostSetParametersCallbackHandle
{
    using SharedPtr = std::shared_ptr<PostSetParametersCallbackHandle>;
    std::function<void(const std::vector<Parameter> &)> call;
};

}  // namespace node_interfaces
}  // namespace rclcpp

namespace rclcpp_lifecycle
{

class State { public: explicit State(int = 0) {} };

class LifecycleNode
{
public:
    LifecycleNode(const std::string &name, const std::map<std::string, rclcpp::Value> &overrides)
    : name_(name), overrides_(overrides)
    {
    }

    const char *get_name() const { return name_.c_str(); }
    rclcpp::Logger get_logger() const { return {}; }
    bool has_parameter(const std::string &name) const { return values_.count(name) > 0; }

    template <class T>
    T declare_parameter(const std::string &name, const T &value)
    {
        const auto given = overrides_.find(name);
        values_[name] = given == overrides_.end() ? rclcpp::Value(value) : given->second;
        return get_parameter(name).get_value<T>();
    }

    rclcpp::Parameter get_parameter(const std::string &name) const
    {
        const auto found = values_.find(name);
        if (found == values_.end())
            throw std::runtime_error("parameter '" + name + "' is not declared");
        return {name, found->second};
    }

    rcl_interfaces::msg::SetParametersResult set_parameter(const rclcpp::Parameter &one)
    {
        if (get_parameter(one.get_name()).value().index() != one.value().index())
            return {false, "another type"};
        // A callback lives as long as its owner keeps it.
        const auto checks = checks_.lock();
        const auto result = checks ? checks->call({one})
                                   : rcl_interfaces::msg::SetParametersResult{true, ""};
        if (!result.successful)
            return result;
        values_[one.get_name()] = one.value();
        if (const auto after = after_.lock())
            after->call({one});
        return result;
    }

    template <class Call>
    auto add_on_set_parameters_callback(const Call &call)
    {
        auto made = std::make_shared<rclcpp::node_interfaces::OnSetParametersCallbackHandle>();
        made->call = call;
        checks_ = made;
        return made;
    }

    template <class Call>
    auto add_post_set_parameters_callback(const Call &call)
    {
        auto made = std::make_shared<rclcpp::node_interfaces::PostSetParametersCallbackHandle>();
        made->call = call;
        after_ = made;
        return made;
    }

private:
    std::string name_;
    std::map<std::string, rclcpp::Value> overrides_, values_;
    std::weak_ptr<rclcpp::node_interfaces::OnSetParametersCallbackHandle> checks_;
    std::weak_ptr<rclcpp::node_interfaces::PostSetParametersCallbackHandle> after_;
};

namespace node_interfaces
{

class LifecycleNodeInterface
{
public:
    enum class CallbackReturn : std::uint8_t { SUCCESS = 97, FAILURE = 98, ERROR = 99 };

    virtual ~LifecycleNodeInterface() = default;
    virtual CallbackReturn on_configure(const State &) { return CallbackReturn::SUCCESS; }
    virtual CallbackReturn on_activate(const State &) { return CallbackReturn::SUCCESS; }
    virtual CallbackReturn on_deactivate(const State &) { return CallbackReturn::SUCCESS; }
};

}  // namespace node_interfaces
}  // namespace rclcpp_lifecycle
