/// Control flow as one step of a program: a body that runs again and again, or one of two bodies.
///
/// A body is a program whose arena is the beginning of the step's scratch. Its external slots are
/// operands of the step, parts of them, or bytes of the scratch; nothing is copied to bind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tightship {

/// Number of an operand or slot that there is not.
constexpr uint32_t kAbsent = std::numeric_limits<uint32_t>::max();
/// Count of a loop that only its condition ends.
constexpr int64_t kUncounted = std::numeric_limits<int64_t>::max();

constexpr int64_t kLine = 64; ///< alignment of bytes in the scratch

struct ControlBody {
    size_t program; ///< index among the bodies of the program around the step
    std::vector<std::pair<uint32_t, uint32_t>> bound; ///< slots with their operands
};

/// Value that an iteration hands to the next one. Its bytes alternate between those of the result
/// and spare ones in the scratch; counted iterations end in those of the result.
/// Without spare bytes all iterations have those of the result, to which the initial value is
/// copied.
struct CarriedState {
    uint32_t input, output;   ///< slots of the body
    uint32_t initial, result; ///< operands
    int64_t spare;            ///< offset in the scratch; negative without spare bytes
    int64_t size_bytes;
};

/// Parts of an operand, of which each iteration reads or writes one.
struct Slices {
    uint32_t slot, operand;
    int64_t rows, row_bytes, stride; ///< a part: so many rows of so many bytes, so far apart
    int64_t first, step;             ///< byte at which the first part begins, and to the next one
    int64_t dense; ///< offset in the scratch of a part without gaps, used unless it is one row
};

/// Result that is equal to an operand.
struct KeptValue {
    uint32_t source, result;
    int64_t size_bytes;
};

/// REQUIRES: the last operand of the step is its scratch.
struct Control {
    std::vector<ControlBody> bodies; ///< one of a loop; of a choice that for false, then for true
    std::vector<CarriedState> states;
    std::vector<Slices> read, written;
    std::vector<KeptValue> kept;
    int64_t most = kUncounted;    ///< iterations at most
    uint32_t count = kAbsent;     ///< operand: iterations at most, an int64
    uint32_t condition = kAbsent; ///< operand: whether to begin, or what to choose
    uint32_t number_slot = kAbsent, goes_on_slot = kAbsent, next_slot = kAbsent;
    int64_t numbers = 0; ///< offset in the scratch of an int64 and two truth values, for these
    bool obeys = false;  ///< whether the value in `next_slot` may end the loop
};

} // namespace tightship
