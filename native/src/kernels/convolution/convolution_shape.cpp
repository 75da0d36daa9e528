#include "tightship/kernels/convolution/convolution.hpp"

#include "tightship/kernels/reach.hpp"

namespace tightship::kernels {

namespace {

constexpr int64_t kLengthMax = 1 << 24; ///< of an axis of an image
constexpr int64_t kBlock = 32;          ///< outputs that weights are packed by

bool has_avx512() {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

} // namespace

bool ConvolutionShape::is_product() const {
    return taps() == 1 && strides == std::array<int64_t, 2>{1, 1} && source == target &&
           pads == std::array<int64_t, 2>{0, 0};
}

void ConvolutionShape::check() const {
    require(has_avx512(), "a kernel needs AVX-512, which this processor lacks");
    for (const auto &pair : {source, target, kernel, strides})
        counted({pair[0], pair[1]}, 1);
    for (const auto &pair : {source, target, kernel, strides, dilations, pads})
        for (const int64_t length : pair)
            require(-kLengthMax <= length && length <= kLengthMax,
                    "a kernel convolves images of such a size");
    counted({batch, channels, outputs, depth}, 1);
    require(channels % depth == 0, "a kernel cuts channels at no border");
    reach(true, true);
}

std::vector<Reach> ConvolutionShape::reach(bool has_bias, bool has_addend) const {
    const auto floats = [](std::initializer_list<int64_t> lengths) {
        return dense(counted(lengths), sizeof(float));
    };
    const Reach whole = floats({batch, target[0], target[1], outputs});
    const int64_t blocks = (outputs + kBlock - 1) / kBlock;
    std::vector<Reach> all{floats({batch, source[0], source[1], channels}),
                           floats({blocks, kBlock, kernel[0], kernel[1], channels})};
    if (has_bias)
        all.push_back(floats({outputs}));
    if (has_addend)
        all.push_back(whole);
    all.push_back(whole);
    return all;
}

} // namespace tightship::kernels
