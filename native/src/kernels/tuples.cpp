#include "tightship/kernels/tuples.hpp"

#include <limits>

namespace tightship::kernels {

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
