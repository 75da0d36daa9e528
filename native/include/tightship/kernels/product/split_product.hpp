/// Products of float32 matrices on the processor's bfloat16 matrix unit (AMX).
#pragma once

#include "tightship/kernel.hpp"

#include <cstdint>
#include <memory>

namespace tightship::kernels {

/// Activation of a product's result.
enum class SplitActivation : uint8_t { kClip, kGelu, kGeluTanh, kSwish };

struct SplitShape {
    int64_t rows, depth, columns;
};

/// End of a product: `activation(product + bias + addend)`; a clip has limits `low` and `high`.
struct SplitEnding {
    bool has_bias, has_addend;
    SplitActivation activation;
    float low, high;
};

/// Returns whether this processor multiplies tiles of bfloat16 (AMX) and the system permits it.
bool multiplies_tiles();

/// Makes a product. Operands: source, weights[, bias][, addend], target, scratch.
///
/// A float32 is the sum of three bfloat16, so that a product is the sum of nine; six of them are
/// computed, because the other three are below the last place of a float32. Sums are float32. The
/// source, target and addend are row-major, the weights [columns / 64][depth to 16][64], padded
/// with zeros; the target may take over the addend's bytes.
/// REQUIRES: `multiplies_tiles()`.
std::shared_ptr<const Kernel> split_product(const SplitShape &shape, const SplitEnding &ending);

} // namespace tightship::kernels
