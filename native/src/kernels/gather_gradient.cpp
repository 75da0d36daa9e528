#include "tightship/kernels/clones.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/kernels/training.hpp"

#include "tightship/parallel.hpp"

#include <cstring>

namespace tightship::kernels {

namespace {

TIGHTSHIP_CLONES void add_row(const float *x, float *sum, int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        sum[index] += x[index];
}

/// Each thread adds up columns of its own, index after index: sums have one order.
template <class Index> class GatherGradient : public Kernel {
  public:
    GatherGradient(std::array<int64_t, 3> shape, int64_t count, std::string name)
        : before_(shape[0]), along_(shape[1]), after_(shape[2]), count_(count),
          name_(std::move(name)) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *dy = reinterpret_cast<const float *>(operands[0]);
        const auto *indices = reinterpret_cast<const Index *>(operands[1]);
        auto *dx = reinterpret_cast<float *>(operands[2]);
        for (int64_t place = 0; place < count_; ++place)
            if (indices[place] < -along_ || indices[place] >= along_)
                throw KernelError("Node `" + name_ + "` picks " + std::to_string(indices[place]) +
                                  " of an axis of " + std::to_string(along_) + ".");
        parallel_for(threads, before_ * along_ * after_, 65536, [&](int64_t begin, int64_t end) {
            std::memset(dx + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
        });
        parallel_for(threads, after_, 64, [&](int64_t begin, int64_t end) {
            for (int64_t b = 0; b < before_; ++b)
                for (int64_t place = 0; place < count_; ++place) {
                    const int64_t index = indices[place] + (indices[place] < 0 ? along_ : 0);
                    add_row(dy + (b * count_ + place) * after_ + begin,
                            dx + (b * along_ + index) * after_ + begin, end - begin);
                }
        });
    }

    std::vector<Reach> reach() const override {
        return {dense(counted({before_, count_, after_}), sizeof(float)),
                dense(count_, sizeof(Index)),
                dense(counted({before_, along_, after_}), sizeof(float))};
    }

  private:
    int64_t before_, along_, after_, count_;
    std::string name_;
};

} // namespace

std::shared_ptr<const Kernel> gather_gradient(std::array<int64_t, 3> shape, int64_t count,
                                              bool is_wide, std::string name) {
    counted({shape[0], shape[1], shape[2], kItemMax}, 1);
    counted({shape[0], count, shape[2], kItemMax});
    if (is_wide)
        return std::make_shared<GatherGradient<int64_t>>(shape, count, std::move(name));
    return std::make_shared<GatherGradient<int32_t>>(shape, count, std::move(name));
}

} // namespace tightship::kernels
