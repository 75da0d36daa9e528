/// Native kernels: steps of our own between primitives, one class for a family of operators.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tightship {

/// Operand elements are invalid for an operator; the text names the node and the valid range.
struct KernelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Bytes of an operand that a run may touch: [low, high) relative to its address.
struct Reach {
    int64_t low, high;
};

/// Operator prepared for fixed shapes; immutable, may run in several threads at once.
class Kernel {
  public:
    virtual ~Kernel() = default;

    /// Runs on `operands`: addresses of inputs, then outputs, then scratch if it needs some.
    /// Allocates nothing. Throws KernelError before it has written anything.
    virtual void run(std::span<char *const> operands, int threads) const = 0;

    /// Bytes of scratch that `run` needs.
    virtual int64_t scratch_bytes(int /*threads*/) const { return 0; }

    /// Bytes that a run may touch of each operand, scratch excluded.
    virtual std::vector<Reach> reach() const = 0;

    /// Number of operands, counted from the last, that a run writes; it only reads the others.
    virtual size_t written() const { return 1; }

    /// Bytes to make it again from, if recorded; else empty.
    std::string recipe;
};

/// Instruction sets of this processor that kernels use: "avx512", "avx512 amx", "avx2" or
/// "portable".
std::string kernel_cpu();

} // namespace tightship
