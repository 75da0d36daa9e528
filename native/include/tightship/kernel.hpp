/// Steps of our own, between primitives: what a family of operators is compiled into.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tightship {

/// Elements an operator cannot work with; the text names the node and what was needed.
struct KernelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Bytes of an operand that a run may touch: [low, high) from its address on.
struct Reach {
    int64_t low, high;
};

/// An operator made ready for fixed shapes; immutable, may run in several threads at once.
class Kernel {
  public:
    virtual ~Kernel() = default;

    /// Reads and writes `operands`: addresses of inputs, outputs, then of its scratch if it has
    /// booked some. Allocates nothing. Throws KernelError before it has written anything.
    virtual void run(std::span<char *const> operands, int threads) const = 0;

    /// Room that `run` needs for itself.
    virtual int64_t scratch_bytes(int /*threads*/) const { return 0; }

    /// How far a run reaches into each of its operands; its scratch is not among them.
    virtual std::vector<Reach> reach() const = 0;

    /// How many of its last operands a run writes; the others it only reads.
    virtual size_t written() const { return 1; }

    /// How to make it again, where that was recorded; else empty.
    std::string recipe;
};

/// Which instructions of this processor kernels are made for: "avx512", "avx512 amx", "avx2" or
/// "portable".
std::string kernel_cpu();

} // namespace tightship
