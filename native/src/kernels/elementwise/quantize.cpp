#include "tightship/kernels/elementwise/quantize.hpp"

#include "tightship/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__)
#define TIGHTSHIP_WIDE_LOOP __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define TIGHTSHIP_WIDE_LOOP
#endif

namespace tightship::kernels {

namespace {

/// Rounds numbers below 2^22 to even when added and subtracted again: 1.5 * 2^23.
constexpr float kRounding = 12582912.0F;

template <class Integer> struct Limits {
    static constexpr float low = static_cast<float>(std::numeric_limits<Integer>::min());
    static constexpr float high = static_cast<float>(std::numeric_limits<Integer>::max());
};

template <class Integer> inline Integer quantized(float x, float scale, float zero) {
    float steps = x / scale;
    steps = steps > Limits<Integer>::low - zero ? steps : Limits<Integer>::low - zero; // NaN too
    steps = steps < Limits<Integer>::high - zero ? steps : Limits<Integer>::high - zero;
    const float rounded = (steps + kRounding) - kRounding;
    return static_cast<Integer>(static_cast<int32_t>(rounded + zero));
}

#define TIGHTSHIP_QUANTIZE_ROW(Integer)                                                            \
    TIGHTSHIP_WIDE_LOOP void quantize_row(const float *x, float scale, float zero, Integer *y,     \
                                          int64_t length) {                                        \
        for (int64_t index = 0; index < length; ++index)                                           \
            y[index] = quantized<Integer>(x[index], scale, zero);                                  \
    }
TIGHTSHIP_QUANTIZE_ROW(int8_t)
TIGHTSHIP_QUANTIZE_ROW(uint8_t)
TIGHTSHIP_QUANTIZE_ROW(int16_t)
TIGHTSHIP_QUANTIZE_ROW(uint16_t)

#define TIGHTSHIP_DEQUANTIZE_ROW(Integer)                                                          \
    TIGHTSHIP_WIDE_LOOP void dequantize_row(const Integer *x, float scale, Integer zero, float *y, \
                                            int64_t length) {                                      \
        for (int64_t index = 0; index < length; ++index)                                           \
            y[index] = (static_cast<float>(x[index]) - static_cast<float>(zero)) * scale;          \
    }
TIGHTSHIP_DEQUANTIZE_ROW(int8_t)
TIGHTSHIP_DEQUANTIZE_ROW(uint8_t)
TIGHTSHIP_DEQUANTIZE_ROW(int16_t)
TIGHTSHIP_DEQUANTIZE_ROW(uint16_t)
TIGHTSHIP_DEQUANTIZE_ROW(int32_t)

template <class Item> Item load(const char *at) {
    Item item;
    std::memcpy(&item, at, sizeof item);
    return item;
}

/// Quantization in either direction: `From` is read, `To` written, zero points are `Integer`s.
template <class From, class To, class Integer> class Affine : public Kernel {
  public:
    Affine(const Dims &shape, const QuantizeStrides &strides, bool has_zero)
        : nest_(shape, strides), has_zero_(has_zero) {}

    void run(std::span<char *const> operands, int threads) const override {
        const char *x = operands[0], *scales = operands[1];
        const char *zeros = has_zero_ ? operands[2] : nullptr;
        char *y = operands[has_zero_ ? 3 : 2];
        const auto steps = nest_.row_steps();
        const bool is_row =
            steps[0] == sizeof(From) && steps[1] == 0 && steps[2] == 0 && steps[3] == sizeof(To);
        nest_.for_each_row(threads, [&](const auto &offsets, int64_t length) {
            const char *scale = scales + offsets[1];
            const char *zero = zeros == nullptr ? nullptr : zeros + offsets[2];
            if (is_row) {
                convert(reinterpret_cast<const From *>(x + offsets[0]), load<float>(scale),
                        zero == nullptr ? Integer{0} : load<Integer>(zero),
                        reinterpret_cast<To *>(y + offsets[3]), length);
                return;
            }
            for (int64_t index = 0; index < length; ++index)
                convert(reinterpret_cast<const From *>(x + offsets[0] + index * steps[0]),
                        load<float>(scale + index * steps[1]),
                        zero == nullptr ? Integer{0} : load<Integer>(zero + index * steps[2]),
                        reinterpret_cast<To *>(y + offsets[3] + index * steps[3]), 1);
        });
    }

    std::vector<Reach> reach() const override {
        std::vector<Reach> all{nest_.reach(0, sizeof(From)), nest_.reach(1, sizeof(float))};
        if (has_zero_)
            all.push_back(nest_.reach(2, sizeof(Integer)));
        all.push_back(nest_.reach(3, sizeof(To)));
        return all;
    }

  private:
    static void convert(const float *x, float scale, Integer zero, Integer *y, int64_t length) {
        if constexpr (sizeof(Integer) < 4)
            quantize_row(x, scale, static_cast<float>(zero), y, length);
    }
    static void convert(const Integer *x, float scale, Integer zero, float *y, int64_t length) {
        dequantize_row(x, scale, zero, y, length);
    }

    LoopNest<4> nest_;
    bool has_zero_;
};

template <class Integer>
std::shared_ptr<const Kernel> to(const Dims &shape, const QuantizeStrides &strides, bool has_zero) {
    return std::make_shared<Affine<float, Integer, Integer>>(shape, strides, has_zero);
}

template <class Integer>
std::shared_ptr<const Kernel> from(const Dims &shape, const QuantizeStrides &strides,
                                   bool has_zero) {
    return std::make_shared<Affine<Integer, float, Integer>>(shape, strides, has_zero);
}

struct Extent {
    float least = 0, greatest = 0;
};

TIGHTSHIP_WIDE_LOOP Extent extent_of(const float *x, int64_t length) {
    constexpr int kLanes = 32;
    float least[kLanes] = {}, greatest[kLanes] = {};
    const int64_t whole = length - length % kLanes;
    for (int64_t index = 0; index < whole; index += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) {
            const float each = x[index + lane];
            least[lane] = each < least[lane] ? each : least[lane];
            greatest[lane] = each > greatest[lane] ? each : greatest[lane];
        }
    for (int64_t index = whole; index < length; ++index) {
        least[0] = std::min(least[0], x[index]);
        greatest[0] = std::max(greatest[0], x[index]);
    }
    return {*std::min_element(least, least + kLanes),
            *std::max_element(greatest, greatest + kLanes)};
}

/// Dynamic quantization: every thread finds the extent of its part, then quantizes it.
class DynamicQuantize : public Kernel {
  public:
    explicit DynamicQuantize(int64_t count) : count_(count) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *x = reinterpret_cast<const float *>(operands[0]);
        auto *y = reinterpret_cast<uint8_t *>(operands[1]);
        auto *extents = reinterpret_cast<Extent *>(operands[4]);
        const int64_t parts = std::clamp<int64_t>(count_ / kGrain, 1, threads);
        const auto start = [&](int64_t part) { return count_ * part / parts; };
        parallel_for(threads, parts, 1, [&](int64_t begin, int64_t end) {
            for (int64_t part = begin; part < end; ++part)
                extents[part] = extent_of(x + start(part), start(part + 1) - start(part));
        });
        Extent all;
        for (int64_t part = 0; part < parts; ++part) {
            all.least = std::min(all.least, extents[part].least);
            all.greatest = std::max(all.greatest, extents[part].greatest);
        }
        const float range = (all.greatest - all.least) / Limits<uint8_t>::high;
        const float scale = range == 0 ? 1.0F : range;
        const float origin =
            std::clamp(std::nearbyint(-all.least / scale), 0.0F, Limits<uint8_t>::high);
        std::memcpy(operands[2], &scale, sizeof scale);
        *reinterpret_cast<uint8_t *>(operands[3]) = static_cast<uint8_t>(origin);
        parallel_for(threads, count_, kGrain, [&](int64_t begin, int64_t end) {
            quantize_row(x + begin, scale, origin, y + begin, end - begin);
        });
    }

    int64_t scratch_bytes(int threads) const override {
        return static_cast<int64_t>(sizeof(Extent)) * threads;
    }

    size_t written() const override { return 3; }

    std::vector<Reach> reach() const override {
        return {dense(count_, sizeof(float)), dense(count_, 1), {0, sizeof(float)}, {0, 1}};
    }

  private:
    static constexpr int64_t kGrain = 1 << 13;
    int64_t count_;
};

[[noreturn]] void refuse(const std::string &dtype) {
    throw std::invalid_argument("no kernel quantizes `" + dtype + "`");
}

} // namespace

std::shared_ptr<const Kernel> quantize(const std::string &dtype, const Dims &shape,
                                       const QuantizeStrides &strides, bool has_zero) {
    if (dtype == "int8")
        return to<int8_t>(shape, strides, has_zero);
    if (dtype == "uint8")
        return to<uint8_t>(shape, strides, has_zero);
    if (dtype == "int16")
        return to<int16_t>(shape, strides, has_zero);
    if (dtype == "uint16")
        return to<uint16_t>(shape, strides, has_zero);
    refuse(dtype);
}

std::shared_ptr<const Kernel> dequantize(const std::string &dtype, const Dims &shape,
                                         const QuantizeStrides &strides, bool has_zero) {
    if (dtype == "int8")
        return from<int8_t>(shape, strides, has_zero);
    if (dtype == "uint8")
        return from<uint8_t>(shape, strides, has_zero);
    if (dtype == "int16")
        return from<int16_t>(shape, strides, has_zero);
    if (dtype == "uint16")
        return from<uint16_t>(shape, strides, has_zero);
    if (dtype == "int32")
        return from<int32_t>(shape, strides, has_zero);
    refuse(dtype);
}

std::shared_ptr<const Kernel> dynamic_quantize(int64_t count) {
    counted({count, kItemMax});
    return std::make_shared<DynamicQuantize>(count);
}

} // namespace tightship::kernels
