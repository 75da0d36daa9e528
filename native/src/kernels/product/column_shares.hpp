/// Shares of the columns of a product, for files of no instruction set of their own.
#pragma once

#include "block_task.hpp"

#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

/// Calls `multiply(thread, first, end)` for the share of each thread, whole `kBlockColumns` but at
/// the end.
template <class Multiply>
void share_columns(int64_t columns, int threads, const Multiply &multiply) {
    const int64_t units = (columns + kBlockColumns - 1) / kBlockColumns;
    const auto bound = [&](int64_t thread) {
        return std::min(columns, units * thread / threads * kBlockColumns);
    };
    parallel_for(threads, threads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t thread = begin; thread < end; ++thread)
            multiply(thread, bound(thread), bound(thread + 1));
    });
}

} // namespace tightship::kernels
