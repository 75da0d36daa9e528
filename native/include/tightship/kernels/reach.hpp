/// Byte ranges that kernels touch, and limits of the numbers that they are made from. After these
/// checks no arithmetic overflows, whatever the numbers came from.
#pragma once

#include "tightship/kernel.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <vector>

namespace tightship::kernels {

using Dims = std::vector<int64_t>;

constexpr int64_t kReachMax = int64_t{1} << 58; ///< bytes or elements of any operand
constexpr size_t kRankMax = 64;
constexpr int64_t kItemMax = 16; ///< bytes of an element, and of a kernel's record of one

inline void require(bool holds, const char *what) {
    if (!holds)
        throw std::invalid_argument(what);
}

/// Multiplies lengths, none of which may be below `least`; every partial product must be within
/// the limit.
inline int64_t counted(std::initializer_list<int64_t> lengths, int64_t least = 0) {
    int64_t count = 1;
    bool is_empty = false;
    for (const int64_t length : lengths) {
        require(least <= length && length <= kReachMax, "a kernel has an impossible length");
        is_empty |= length == 0;
        const int64_t factor = std::max<int64_t>(length, 1);
        require(count <= kReachMax / factor, "a kernel has too many elements");
        count *= factor;
    }
    return is_empty ? 0 : count;
}

/// Requires `length` items from `start` on to be among `whole`.
inline void require_within(int64_t start, int64_t length, int64_t whole) {
    require(0 <= start && 0 <= length && start <= whole - length, "a kernel's part lies outside");
}

inline Reach dense(int64_t count, int64_t item_bytes) {
    return {0, counted({count, item_bytes})};
}

/// Returns the bytes that elements of `item_bytes` occupy by `shape` and `strides` of any sign.
/// Throws unless there are as many strides as lengths, and all are within the limits.
inline Reach reach_of(const Dims &shape, const Dims &strides, int64_t item_bytes) {
    require(shape.size() == strides.size() && shape.size() <= kRankMax,
            "a kernel has strides of another rank than its shape");
    int64_t count = 1;
    for (const int64_t length : shape)
        count = counted({count, length});
    if (count == 0)
        return {0, 0};
    Reach reach{0, item_bytes};
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        const int64_t steps = shape[axis] - 1, stride = strides[axis];
        require(stride > -kReachMax && stride < kReachMax, "a kernel has an impossible stride");
        const int64_t distance = counted({std::abs(stride), steps});
        (stride < 0 ? reach.low : reach.high) += stride < 0 ? -distance : distance;
        require(reach.low > -kReachMax && reach.high < kReachMax, "a kernel reaches too far");
    }
    return reach;
}

/// Returns the range of `then` applied from every position in `first`.
inline Reach joined(Reach first, Reach then, int64_t item_bytes) {
    if (first.low == first.high || then.low == then.high)
        return {0, 0};
    return {first.low + then.low, first.high + then.high - item_bytes};
}

inline void require_item(int64_t item_bytes) {
    require(item_bytes == 1 || item_bytes == 2 || item_bytes == 4 || item_bytes == 8 ||
                item_bytes == 16,
            "a kernel moves elements of a size that there is not");
}

} // namespace tightship::kernels
