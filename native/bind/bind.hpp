/// One function for each family of bindings; `module.cpp` calls them.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/resource/memory_resource.hpp"

#include <nanobind/nanobind.h>

namespace tightship::bind {

/// Python signature of a method that refuses to pickle.
constexpr const char *kReduceSignature =
    "def __reduce_ex__(self, protocol: typing.SupportsIndex, /) -> str";

void arithmetic_kernels(nanobind::class_<Kernel> &kernel);
void row_kernels(nanobind::class_<Kernel> &kernel);
void rank_kernels(nanobind::class_<Kernel> &kernel);
void planner(nanobind::module_ &module);
void search(nanobind::module_ &module);
void table(nanobind::module_ &module);
void plan_file_rows(nanobind::module_ &module);
void verifier(nanobind::module_ &module);
void items(nanobind::module_ &module);
void order(nanobind::module_ &module);
void flow(nanobind::module_ &module);
void least_order(nanobind::module_ &module);
void checkpoints(nanobind::module_ &module);
void reuse(nanobind::module_ &module);
void resource(nanobind::module_ &module);
void resource_blocks(nanobind::module_ &module, nanobind::class_<resource::MemoryResource> &base);
void resource_kinds(nanobind::module_ &module);
void committed_range(nanobind::module_ &module);
void page_range(nanobind::module_ &module);
void composed_resources(nanobind::module_ &module);
void adaptors(nanobind::module_ &module);
void planned_resource(nanobind::module_ &module);
void virtual_resources(nanobind::module_ &module);
void cuda_resources(nanobind::module_ &module);
void cuda_pools(nanobind::module_ &module);
/// Block as Python passes it back to its resource.
struct GivenBlock {
    uint64_t address;
    size_t size_bytes;
    size_t alignment;
};
/// Raises the reason why a block cannot be freed.
[[noreturn]] void refuse_block(const resource::MemoryResource &self, resource::Freed freed,
                               GivenBlock block);
/// Shows the garbage collector the Python objects that a resource keeps alive.
int traverse_resource(PyObject *self, visitproc visit, void *arg);
void callback_resources(nanobind::module_ &module);
void checking_adaptors(nanobind::module_ &module);
void numpy_resource(nanobind::module_ &module);
void numpy_threads(nanobind::module_ &module);
void replaying(nanobind::module_ &module);
void dynamic_memory(nanobind::module_ &module);
void stop_flag(nanobind::module_ &module);
void sha256(nanobind::module_ &module);
void byte_pairs(nanobind::module_ &module);
void gguf_stored(nanobind::module_ &module);
void guarded_mapping(nanobind::module_ &module);
void repeats(nanobind::module_ &module);
void permits(nanobind::module_ &module);
void request_metrics(nanobind::module_ &module);
void onednn(nanobind::module_ &module);
void kernels(nanobind::module_ &module);
void detection(nanobind::module_ &module);
void movement_kernels(nanobind::class_<Kernel> &kernel);
void indexed_kernels(nanobind::class_<Kernel> &kernel);
void generate_kernels(nanobind::class_<Kernel> &kernel);
void sequence_kernels(nanobind::class_<Kernel> &kernel);
void attention_kernels(nanobind::class_<Kernel> &kernel);
void convolution_kernels(nanobind::class_<Kernel> &kernel);
void depthwise_kernels(nanobind::class_<Kernel> &kernel);
void plane_kernels(nanobind::class_<Kernel> &kernel);
void quantized_row_kernels(nanobind::class_<Kernel> &kernel);
void winograd_kernels(nanobind::class_<Kernel> &kernel);
void rotary_kernels(nanobind::class_<Kernel> &kernel);
void block_product_kernels(nanobind::module_ &module, nanobind::class_<Kernel> &kernel);
void split_product_kernels(nanobind::module_ &module, nanobind::class_<Kernel> &kernel);
void recurrent_kernels(nanobind::class_<Kernel> &kernel);
void quantize_kernels(nanobind::class_<Kernel> &kernel);
void training_kernels(nanobind::class_<Kernel> &kernel);
void program(nanobind::module_ &module);
void sized_program(nanobind::module_ &module);
void session_steps(nanobind::module_ &module);
void primitive_memory(nanobind::module_ &module);
void primitive_cache(nanobind::module_ &module);

} // namespace tightship::bind
