#include "bind.hpp"
#include "gil.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>

#include "tightship/packing/reuse.hpp"

namespace tightship::bind {
namespace {

namespace nb = nanobind;

using Columns = nb::ndarray<const std::int64_t, nb::shape<4, -1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const std::int64_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<const std::int64_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, std::int64_t, nb::shape<-1>, nb::c_contig>;

static_assert(sizeof(packing::Penalty) == 3 * sizeof(std::int64_t));

Result reduce_reuse(const Columns &columns, const Rows &penalties, std::int64_t capacity,
                    const Values &offsets, std::int64_t moves) {
    const std::size_t count = columns.shape(1);
    const auto row = [&](std::size_t index) {
        return std::span(columns.data() + index * count, count);
    };
    const std::span pairs(reinterpret_cast<const packing::Penalty *>(penalties.data()),
                          penalties.shape(0));
    const auto known = [&](std::int64_t buffer) {
        return buffer >= 0 && static_cast<std::size_t>(buffer) < count;
    };
    if (offsets.shape(0) != count)
        throw nb::value_error("offsets have another length than the columns");
    for (const packing::Penalty &pair : pairs)
        if (!known(pair.first) || !known(pair.second))
            throw nb::index_error("a penalty is of no buffer");
    auto reduced = std::make_unique<place::Offsets>();
    {
        const GilReleased release;
        *reduced = packing::reduce_reuse({row(0), row(1), row(2), row(3)}, pairs, capacity,
                                         {offsets.data(), count}, moves);
    }
    nb::capsule owner(reduced.get(),
                      [](void *data) noexcept { delete static_cast<place::Offsets *>(data); });
    place::Offsets *released = reduced.release();
    return Result(released->data(), {released->size()}, owner);
}

} // namespace

void reuse(nb::module_ &module) {
    module.def(
        "reduce_reuse", reduce_reuse, nb::arg("columns"), nb::arg("penalties"), nb::arg("capacity"),
        nb::arg("offsets"), nb::arg("moves"),
        "Return offsets within a capacity that lower the penalties of pairs that share bytes.");
}

} // namespace tightship::bind
