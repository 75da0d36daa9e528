/// Loops of attention, compiled once for each instruction set.
#pragma once

#include "attention_few.hpp"
#include "attention_head.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

void attend(const AttentionTask &task) {
    Head(task).run();
}

void attend_few(const AttentionTask &task, int64_t first, int64_t end, const Partial &partial) {
    Few(task, partial).run(first, end);
}

} // namespace

const AttentionLoops attention_loops{attend, attend_few, merge};

} // namespace tightship::kernels::TIGHTSHIP_ISA
