#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/gradient/training.hpp"
#include "tightship/kernels/reach.hpp"

#include "tightship/parallel.hpp"

#include <cstring>

namespace tightship::kernels {

namespace {

TIGHTSHIP_CLONES void add_row(const float *x, float *sum, int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        sum[index] += x[index];
}

/// Gradient of a Gather: each thread adds up columns of its own, index after index, so that sums
/// have one order.
template <class Index> class GatherGradient : public Kernel {
  public:
    GatherGradient(const PickedSpec &spec, std::string name)
        : spec_(spec), name_(std::move(name)) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto [before, along, after, start, length, count] = spec_;
        const auto *dy = reinterpret_cast<const float *>(operands[0]);
        const auto *indices = reinterpret_cast<const Index *>(operands[1]);
        auto *dx = reinterpret_cast<float *>(operands[2]);
        for (int64_t place = 0; place < count; ++place)
            if (indices[place] < -along || indices[place] >= along)
                throw KernelError("Node `" + name_ + "` picks " + std::to_string(indices[place]) +
                                  " of an axis of " + std::to_string(along) + ".");
        parallel_for(threads, before * length * after, 65536, [&](int64_t begin, int64_t end) {
            std::memset(dx + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
        });
        parallel_for(threads, after, 64, [&](int64_t begin, int64_t end) {
            for (int64_t b = 0; b < spec_.before; ++b)
                for (int64_t place = 0; place < spec_.count; ++place) {
                    const int64_t index = picked(indices[place]);
                    if (index < 0 || index >= spec_.length)
                        continue;
                    add_row(dy + (b * spec_.count + place) * spec_.after + begin,
                            dx + (b * spec_.length + index) * spec_.after + begin, end - begin);
                }
        });
    }

    std::vector<Reach> reach() const override {
        return {dense(counted({spec_.before, spec_.count, spec_.after}), sizeof(float)),
                dense(spec_.count, sizeof(Index)),
                dense(counted({spec_.before, spec_.length, spec_.after}), sizeof(float))};
    }

  private:
    /// Returns the position of an index in the result; outside [0, length) if the result lacks it.
    int64_t picked(int64_t index) const {
        return index + (index < 0 ? spec_.along : 0) - spec_.start;
    }

    PickedSpec spec_;
    std::string name_;
};

} // namespace

std::shared_ptr<const Kernel> gather_gradient(const PickedSpec &spec, bool is_wide,
                                              std::string name) {
    counted({spec.before, spec.along, spec.after, kItemMax}, 1);
    counted({spec.before, spec.count, spec.after, kItemMax});
    require_within(spec.start, spec.length, spec.along);
    if (is_wide)
        return std::make_shared<GatherGradient<int64_t>>(spec, std::move(name));
    return std::make_shared<GatherGradient<int32_t>>(spec, std::move(name));
}

} // namespace tightship::kernels
