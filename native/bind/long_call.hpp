/// Calls on blocks so large that other threads of Python run meanwhile.
#pragma once

#include "gil.hpp"

#include <cstddef>
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <utility>

namespace tightship::bind {

/// Bytes below which mapping, filling or unmapping takes less than Python's switch interval of 5
/// ms.
constexpr size_t kLongBytes = size_t{16} << 20;

/// Returns whether this thread holds the GIL. Every Python exports the function for this, but the
/// limited API does not declare it, so it is looked up; false if it is missing.
inline bool holds_gil() {
    static const auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
    return check != nullptr && check() != 0;
}

/// Returns the result of `work`, which runs without the GIL for `kLongBytes` or more.
template <class Work> auto call_long(size_t size_bytes, Work &&work) {
    if (size_bytes < kLongBytes || !holds_gil()) [[likely]]
        return std::forward<Work>(work)();
    const GilReleased release;
    return std::forward<Work>(work)();
}

} // namespace tightship::bind
