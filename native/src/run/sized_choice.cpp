#include "tightship/run/sized_choice.hpp"

#include <algorithm>
#include <stdexcept>

namespace tightship {

using kernels::Tensor;

SizedChoice::SizedChoice(SizedBranch otherwise, SizedBranch then, bool is_then_first)
    : branches_{std::move(otherwise), std::move(then)}, is_then_first_(is_then_first) {
    for (const SizedBranch &branch : branches_) {
        const size_t count = branch.program->value_count();
        const auto is_missing = [count](uint32_t value) { return value >= count; };
        if (std::ranges::any_of(branch.captured, is_missing) ||
            std::ranges::any_of(branch.results, is_missing) ||
            std::ranges::any_of(branch.constants,
                                [&](const auto &each) { return is_missing(each.first); }))
            throw std::out_of_range("a branch has a value that its program lacks");
    }
}

bool SizedChoice::run(kernels::Operands operands, kernels::Results results,
                      const kernels::TensorRoom &room, int threads) const {
    const size_t count = branches_[0].captured.size() + branches_[1].captured.size();
    const Tensor &condition = *operands[0];
    if (condition.type != kernels::ElementType::kBool || condition.count() != 1 ||
        operands.size() != 1 + count)
        return false;
    const bool is_true = *condition.data != 0;
    const SizedBranch &branch = branches_[is_true ? 1 : 0];
    SizedContext context(*branch.program, nullptr);
    const bool is_first = is_true == is_then_first_;
    size_t place = is_first ? 1 : 1 + branches_[is_true ? 0 : 1].captured.size();
    for (const uint32_t value : branch.captured)
        context.set(value, *operands[place++]);
    for (const auto &[value, tensor] : branch.constants)
        context.set(value, tensor);
    if (!context.run_all(room, threads) || branch.results.size() != results.size())
        return false;
    for (size_t index = 0; index < results.size(); ++index) {
        const Tensor &found = context.value(branch.results[index]);
        if (found.data == nullptr)
            return false;
        results[index] = room.reshaped(found, found.shape());
    }
    return true;
}

} // namespace tightship
