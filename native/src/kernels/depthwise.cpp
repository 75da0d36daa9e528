#include "depthwise_task.hpp"
#include "this_cpu.hpp"

#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kGrain = 1 << 15; ///< products that are worth a thread
/// Kernels' heights that a thread's rows must be for rows to be shared out: those between two
/// threads' are read twice.
constexpr int64_t kHeights = 2;

class Depthwise : public Kernel {
  public:
    Depthwise(const DepthwiseShape &shape, bool has_means)
        : shape_(shape), has_means_(has_means),
          loop_(for_this_cpu(avx512::convolve, avx2::convolve, portable::convolve)) {}

    int64_t scratch_bytes(int threads) const override {
        return ring_floats() * threads * static_cast<int64_t>(sizeof(float));
    }

    void run(std::span<char *const> operands, int threads) const override {
        const auto at = [&](size_t index) { return reinterpret_cast<float *>(operands[index]); };
        float *means = has_means_ ? at(4) : nullptr;
        const DepthwiseTask task{&shape_, at(0), at(1), at(2), at(3), means, nullptr};
        const int64_t rows = shape_.batch * shape_.target[0], groups = shape_.groups();
        const bool by_rows = rows >= threads * kHeights * shape_.rows_reached() || groups == 1;
        const int64_t count = by_rows ? rows : groups;
        const int64_t work = rows * shape_.target[1] * shape_.channels * shape_.taps() / count;
        const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(work, 1), 1);
        const int64_t tickets = std::clamp<int64_t>(count / grain, 1, threads);
        parallel_for(threads, count, grain, [&](int64_t begin, int64_t end) {
            DepthwiseTask own = task;
            const int64_t ticket = (begin * tickets + count - 1) / count;
            own.ring = reinterpret_cast<float *>(operands.back()) + ticket * ring_floats();
            loop_(own, by_rows ? DepthwisePart{begin, end, 0, groups}
                               : DepthwisePart{0, rows, begin, end});
        });
    }

  private:
    int64_t ring_floats() const {
        return shape_.rows_reached() * shape_.columns_reached() * kDepthwiseGroup;
    }

    DepthwiseShape shape_;
    bool has_means_;
    DepthwiseLoop loop_;
};

} // namespace

std::shared_ptr<const Kernel> depthwise(const DepthwiseShape &shape, bool has_means) {
    return std::make_shared<Depthwise>(shape, has_means);
}

} // namespace tightship::kernels
