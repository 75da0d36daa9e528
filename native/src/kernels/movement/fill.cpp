#include "tightship/kernels/movement/generate.hpp"

#include "tightship/kernels/movement/number.hpp"
#include "tightship/kernels/movement/strided_copy.hpp"
#include "tightship/kernels/spans.hpp"

namespace tightship::kernels {

namespace {

class Fills : public Kernel {
  public:
    explicit Fills(const std::vector<Fill> &fills) {
        for (const Fill &fill : fills) {
            require(fill.offset_bytes > -kReachMax && fill.offset_bytes < kReachMax,
                    "a kernel fills impossible places");
            each_.push_back({fill.element, fill.offset_bytes,
                             StridedCopy(static_cast<int64_t>(fill.element.size()), fill.shape,
                                         Dims(fill.shape.size(), 0), fill.strides)});
        }
    }

    void run(std::span<char *const> operands, int threads) const override {
        for (const Each &each : each_)
            each.copy.run(each.element.data(), operands[0] + each.offset_bytes, threads);
    }

    std::vector<Reach> reach() const override {
        Reach all{0, 0};
        for (const Each &each : each_) {
            const Reach own = each.copy.target_reach();
            if (own.low != own.high)
                all = {std::min(all.low, own.low + each.offset_bytes),
                       std::max(all.high, own.high + each.offset_bytes)};
        }
        return {all};
    }

  private:
    struct Each {
        std::string element;
        int64_t offset_bytes;
        StridedCopy copy;
    };
    std::vector<Each> each_;
};

template <class Number> class Ramp : public Kernel {
  public:
    explicit Ramp(int64_t count) : count_(count) {}

    void run(std::span<char *const> operands, int threads) const override {
        const Number start = load<Number>(operands[0]), step = load<Number>(operands[1]);
        parallel_for(threads, count_, int64_t{1} << 14, [&](int64_t begin, int64_t end) {
            for (int64_t index = begin; index < end; ++index)
                store(operands[2] + index * static_cast<int64_t>(sizeof(Number)),
                      sum(product(static_cast<Number>(index), step), start));
        });
    }

    std::vector<Reach> reach() const override {
        const int64_t item = sizeof(Number);
        return {{0, item}, {0, item}, dense(count_, item)};
    }

  private:
    int64_t count_;
};

} // namespace

std::shared_ptr<const Kernel> fills(const std::vector<Fill> &fills) {
    return std::make_shared<Fills>(fills);
}

std::shared_ptr<const Kernel> ramp(const std::string &dtype, int64_t count) {
    std::shared_ptr<const Kernel> kernel;
    counted({count, kItemMax});
    with_number(dtype, [&](auto zero) { kernel = std::make_shared<Ramp<decltype(zero)>>(count); });
    return kernel;
}

} // namespace tightship::kernels
