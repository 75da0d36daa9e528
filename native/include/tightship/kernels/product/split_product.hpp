/// Products of float32 matrices on the processor's unit for bfloat16 matrices.
#pragma once

#include "tightship/kernel.hpp"

#include <cstdint>
#include <memory>

namespace tightship::kernels {

/// What a product's sums go through at last.
enum class SplitActivation : uint8_t { kClip, kGelu, kGeluTanh, kSwish };

struct SplitShape {
    int64_t rows, depth, columns;
};

/// `activation(product + bias + addend)`; a clip's limits are `low` and `high`.
struct SplitEnding {
    bool has_bias, has_addend;
    SplitActivation activation;
    float low, high;
};

/// Whether this processor multiplies tiles of bfloat16 (AMX), and the system lets us.
bool multiplies_tiles();

/// Source, weights, [bias,] [addend,] target, scratch.
///
/// A float32 is the sum of three bfloat16, so that a product is the sum of nine; six of them are
/// computed, for the other three are less than a float32's last place. Sums are float32. The
/// source, target and addend are row-major, the weights [columns / 64][depth to 16][64], zeros
/// behind the last; the target may take over the addend's bytes.
/// REQUIRES: `multiplies_tiles()`.
std::shared_ptr<const Kernel> split_product(const SplitShape &shape, const SplitEnding &ending);

} // namespace tightship::kernels
