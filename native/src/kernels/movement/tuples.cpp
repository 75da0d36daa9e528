#include "tightship/kernels/movement/tuples.hpp"

#include <algorithm>
#include <limits>

namespace tightship::kernels {

Tuples::Tuples(const Indexing &indexing)
    : node_(indexing.node), index_bytes_(indexing.index_bytes), coordinates_(indexing.coordinates),
      shape_(indexing.shape), strides_(indexing.strides),
      nest_(indexing.shape, {indexing.strides}) {
    require(index_bytes_ == 4 || index_bytes_ == 8, "a kernel has indices of another size");
    for (const Coordinate &each : coordinates_) {
        require(each.block >= 0 && each.block < kReachMax, "a kernel has impossible blocks");
        for (const int64_t number : {each.length, each.index_step})
            require(0 <= number && number < kReachMax, "a kernel has an impossible index");
    }
    own_reach();
    data_reach({0, 1}, 1);
}

void Tuples::require_checked(const Walk &walk) const {
    std::vector<bool> is_used(shape_.size(), false);
    require(walk.shape.size() == walk.tuples.size(), "a kernel walks over other axes");
    for (size_t axis = 0; axis < walk.shape.size(); ++axis) {
        if (walk.tuples[axis] == 0 || walk.shape[axis] <= 1)
            continue;
        size_t own = 0;
        while (own < shape_.size() && (is_used[own] || strides_[own] != walk.tuples[axis] ||
                                       shape_[own] < walk.shape[axis]))
            ++own;
        require(own < shape_.size(), "a kernel reads tuples that it does not check");
        is_used[own] = true;
    }
}

Reach Tuples::data_reach(Reach walked, int64_t item_bytes) const {
    for (const Coordinate &each : coordinates_) {
        if (each.length == 0)
            return {0, 0};
        const int64_t along = each.block == 0 ? each.length : std::min(each.block, each.length);
        const int64_t blocks = each.block == 0 ? 1 : (each.length - 1) / each.block + 1;
        const Reach own = reach_of({along, blocks}, {each.data_step, each.block_step}, item_bytes);
        walked = joined(walked, own, item_bytes);
    }
    return walked;
}

Reach Tuples::own_reach() const {
    Reach all = nest_.reach(0, index_bytes_);
    int64_t farthest = 0;
    for (const Coordinate &each : coordinates_)
        farthest = std::max(farthest, each.index_step);
    return all.low == all.high ? all : Reach{all.low, all.high + farthest};
}

void Tuples::check(const char *tuples) const {
    if (index_bytes_ == 4)
        check_all<int32_t>(tuples);
    else
        check_all<int64_t>(tuples);
}

template <class Index> void Tuples::check_all(const char *tuples) const {
    for (const Coordinate &along : coordinates_) {
        Index least = std::numeric_limits<Index>::max();
        Index greatest = std::numeric_limits<Index>::min();
        const int64_t step = nest_.row_steps()[0];
        nest_.for_each_row(1, [&](const auto &offsets, int64_t length) {
            const char *from = tuples + offsets[0] + along.index_step;
            for (int64_t place = 0; place < length; ++place) {
                const Index index = load<Index>(from + place * step);
                least = std::min(least, index);
                greatest = std::max(greatest, index);
            }
        });
        const int64_t length = along.length;
        if (least > greatest || (least >= -length && greatest < length))
            continue;
        throw KernelError("Node `" + node_ + "` indexes a dimension of " + std::to_string(length) +
                          " with elements in [" + std::to_string(least) + ", " +
                          std::to_string(greatest) + "]; they must be in [" +
                          std::to_string(-length) + ", " + std::to_string(length - 1) + "].");
    }
}

} // namespace tightship::kernels
