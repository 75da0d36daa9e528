/// An If whose branches have operators for all of their steps.
#pragma once

#include "tightship/run/sized_program.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace tightship {

/// Graph that a choice may run.
struct SizedBranch {
    std::shared_ptr<const SizedProgram> program;
    std::vector<uint32_t> captured; ///< values that the operands behind the condition are
    std::vector<uint32_t> results;
    std::vector<std::pair<uint32_t, kernels::Tensor>> constants;
};

class SizedChoice : public kernels::SizedOperator {
  public:
    /// Takes the branch for a false condition, then that for a true one, and whose captures come
    /// first among the operands behind the condition. Throws std::out_of_range if a program lacks a
    /// value.
    SizedChoice(SizedBranch otherwise, SizedBranch then, bool is_then_first);

    bool run(kernels::Operands operands, kernels::Results results, const kernels::TensorRoom &room,
             int threads) const override;

  private:
    SizedBranch branches_[2];
    bool is_then_first_;
};

} // namespace tightship
