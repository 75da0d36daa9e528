#include "cpu/this_cpu.hpp"
#include "depthwise_task.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kLengthMax = 1 << 24; ///< of an axis of an image
constexpr int64_t kGrain = 1 << 15;     ///< multiply-adds that pay for a thread
/// Heights of the kernel that a thread's rows must have for rows to be shared out, because the rows
/// between two threads' are read twice.
constexpr int64_t kHeights = 2;

constexpr int64_t kBlock = 16; ///< channels that are adjacent
constexpr int64_t kFloat = sizeof(float);

/// Throws std::invalid_argument if loops would divide by zero, or leave their ring.
void check(const DepthwiseShape &shape) {
    for (const auto &pair : {shape.source, shape.target, shape.kernel, shape.strides})
        counted({pair[0], pair[1]}, 1);
    for (const auto &pair :
         {shape.source, shape.target, shape.kernel, shape.strides, shape.dilations, shape.pads})
        require(0 <= std::min(pair[0], pair[1]) && std::max(pair[0], pair[1]) <= kLengthMax,
                "a kernel convolves images of such a size");
    require(shape.kernel[0] <= kDepthwiseRows, "a kernel convolves over too many rows");
    counted({shape.batch, shape.channels}, 1);
    counted({shape.batch, shape.target[0], shape.target[1], shape.taps(), shape.channels + kBlock});
    counted({shape.rows_reached(), shape.columns_reached(), kDepthwiseGroup, kFloat}, 1);
    for (const ImageStrides &strides : {shape.source_strides, shape.target_strides})
        counted({std::abs(strides.block), shape.channels});
}

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

    size_t written() const override { return has_means_ ? 2 : 1; }

    std::vector<Reach> reach() const override {
        const int64_t packed = shape_.groups() * kDepthwiseGroup;
        std::vector<Reach> all{image(shape_.source, shape_.source_strides),
                               dense(counted({packed, shape_.taps()}), sizeof(float)),
                               dense(packed, sizeof(float)),
                               image(shape_.target, shape_.target_strides)};
        if (has_means_)
            all.push_back(
                dense(counted({shape_.batch, shape_.target[0], shape_.channels}), sizeof(float)));
        return all;
    }

  private:
    /// Returns the bytes that images span whose channels lie in blocks, the last of them perhaps
    /// partly used.
    Reach image(const std::array<int64_t, 2> &size, const ImageStrides &strides) const {
        const Reach pixels = reach_of({shape_.batch, size[0], size[1]},
                                      {strides.image, strides.row, strides.pixel}, 1);
        const int64_t last = (shape_.channels - 1) / kBlock;
        const int64_t whole =
            last == 0 ? 0 : std::max<int64_t>(last - 1, 0) * strides.block + kBlock;
        const Reach channels{std::min<int64_t>(0, last * strides.block),
                             std::max({last * strides.block + shape_.channels - last * kBlock,
                                       whole, std::min(kBlock, shape_.channels)})};
        const Reach floats = joined(pixels, channels, 1);
        return {floats.low * kFloat, floats.high * kFloat};
    }

    int64_t ring_floats() const {
        return shape_.rows_reached() * shape_.columns_reached() * kDepthwiseGroup;
    }

    DepthwiseShape shape_;
    bool has_means_;
    DepthwiseLoop loop_;
};

} // namespace

std::shared_ptr<const Kernel> depthwise(const DepthwiseShape &shape, bool has_means) {
    check(shape);
    auto kernel = std::make_shared<Depthwise>(shape, has_means);
    kernel->reach();
    return kernel;
}

} // namespace tightship::kernels
