/// One function for each family of bindings; `module.cpp` calls them.
#pragma once

#include "tightship/kernel.hpp"

#include <nanobind/nanobind.h>

namespace tightship::bind {

void arithmetic_kernels(nanobind::class_<Kernel> &kernel);
void row_kernels(nanobind::class_<Kernel> &kernel);
void rank_kernels(nanobind::class_<Kernel> &kernel);
void planner(nanobind::module_ &module);
void resource(nanobind::module_ &module);
void numpy_bound(nanobind::module_ &module);
void stop_flag(nanobind::module_ &module);
void onednn(nanobind::module_ &module);
void kernels(nanobind::module_ &module);
void movement_kernels(nanobind::class_<Kernel> &kernel);
void indexed_kernels(nanobind::class_<Kernel> &kernel);
void generate_kernels(nanobind::class_<Kernel> &kernel);
void sequence_kernels(nanobind::class_<Kernel> &kernel);
void attention_kernels(nanobind::class_<Kernel> &kernel);
void convolution_kernels(nanobind::class_<Kernel> &kernel);
void rotary_kernels(nanobind::class_<Kernel> &kernel);
void quantize_kernels(nanobind::class_<Kernel> &kernel);
void program(nanobind::module_ &module);

} // namespace tightship::bind
