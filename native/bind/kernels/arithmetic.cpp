#include "recorded.hpp"
#include "tightship/kernels/elementwise/elementwise.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using kernels::ElementType;
using KernelPointer = std::shared_ptr<const Kernel>;

/// Returns null if kernels cannot compute with one of the types.
std::optional<std::vector<ElementType>> element_types(const std::vector<std::string> &names) {
    std::vector<ElementType> types;
    for (const std::string &name : names) {
        const auto type = kernels::element_type(name);
        if (!type)
            return std::nullopt;
        types.push_back(*type);
    }
    return types;
}

KernelPointer elementwise(const std::string &name, const std::vector<std::string> &names,
                          kernels::Dims shape, std::vector<kernels::Dims> strides,
                          std::vector<double> parameters) {
    const auto types = element_types(names);
    if (!types)
        return nullptr;
    return kernels::elementwise(
        {name, *types, std::move(shape), std::move(strides), std::move(parameters)});
}

std::optional<int64_t> streamed_bytes(const std::string &name, const std::string &type) {
    const auto found = kernels::element_type(type);
    if (!found || kernels::streamed_operation(name, *found) == nullptr)
        return std::nullopt;
    return kernels::kStreamedBytes;
}

} // namespace

void arithmetic_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel).def_static(
        "elementwise", &elementwise, "name"_a, "types"_a, "shape"_a, "strides"_a, "parameters"_a,
        nb::sig("def elementwise(name: str, types: Sequence[str], "
                "shape: Sequence[int], strides: Sequence[Sequence[int]], "
                "parameters: Sequence[float]) -> NativeKernel | None"),
        "Inputs, output: an operator on each element; types and strides (bytes) of "
        "inputs, then of the output. None if no kernel has these types.");
    kernel.def_static("elementwise_names", &kernels::elementwise_names,
                      "Names that `elementwise` has kernels of, sorted.");
    kernel.def_static("streamed_bytes", &streamed_bytes, "name"_a, "type"_a,
                      "Bytes of a dense result from which an `elementwise` of operands of one "
                      "shape writes around the caches; None if it never does on this processor.");
}

} // namespace tightship::bind
