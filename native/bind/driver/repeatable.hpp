/// Repeatable runs in the form that the core keeps.
#pragma once

#include "gil.hpp"
#include "tightship/run/program.hpp"

#include <functional>
#include <nanobind/nanobind.h>
#include <utility>

namespace tightship::bind {

/// Returns a function that runs a context; what it refers to must live until it is forgotten.
inline std::function<bool()> runner(Context &context, std::pair<size_t, size_t> steps,
                                    const StopFlag &stop) {
    return [&context, steps, &stop] {
        const std::function<void()> nothing = [] {};
        try {
            return context.run(steps.first, steps.second, {stop, {}, nothing}) == Outcome::kDone;
        } catch (const std::exception &) {
            return false;
        }
    };
}

/// Returns a function that calls `run`, which must live until it is forgotten.
inline std::function<bool()> caller(nanobind::handle run) {
    return [run] {
        return with_gil([&run] {
            try {
                run();
                return true;
            } catch (const nanobind::python_error &) {
                return false;
            }
        });
    };
}

} // namespace tightship::bind
