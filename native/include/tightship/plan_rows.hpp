/// Buffers of a plan file: an array of flat JSON objects, read into columns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tightship/table.hpp"

namespace tightship::plan_rows {

/// Fields of a buffer besides its name, in the order of writing.
constexpr std::array<std::string_view, 5> kFields{"size_bytes", "alignment", "start_step",
                                                  "stop_step", "offset_bytes"};

struct Rows {
    std::array<std::vector<std::int64_t>, kFields.size()> columns;
    table::Words names; // empty if all names are null
    std::size_t begin;  // of the array in the content
    std::size_t end;    // after it
};

/// Reads the array under the key `buffers` of the object in `content`. Returns nothing if the array
/// is missing or not plain: each buffer must have a name and the five fields once, and nothing
/// else; integers in [0, 2**63); names without escapes, or all null.
std::optional<Rows> read(std::string_view content);

/// Writes the array's elements as JSON, a line each. `names` is null if buffers have none.
/// REQUIRES: columns, and the stops of the names, of one length.
std::string write(std::span<const std::span<const std::int64_t>> columns, const char *names,
                  std::span<const std::int64_t> stops);

} // namespace tightship::plan_rows
