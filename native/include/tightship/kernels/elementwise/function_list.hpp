/// One list for each family of functions: `F(Name, body)` for each. Codes, names and bodies are
/// made of it, so that no position is written twice.
#pragma once

#include <cstddef>
#include <string_view>

#define TIGHTSHIP_CODE(name, ...) k##name,
#define TIGHTSHIP_NAME(name, ...) std::string_view(#name),

namespace tightship::kernels {

/// The code of a name in its list; -1 where the list lacks it.
template <class Names> constexpr int code_of(const Names &names, std::string_view name) {
    int code = 0;
    for (const std::string_view each : names) {
        if (each == name)
            return code;
        ++code;
    }
    return -1;
}

} // namespace tightship::kernels
