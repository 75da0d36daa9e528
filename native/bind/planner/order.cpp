#include "bind.hpp"
#include "gil.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "tightship/packing/order.hpp"

namespace tightship::bind {
namespace {

namespace nb = nanobind;

using Columns = nb::ndarray<const std::int64_t, nb::shape<4, -1>, nb::c_contig, nb::device::cpu>;
using Key = nb::ndarray<const std::int64_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<nb::numpy, std::int64_t, nb::shape<-1>, nb::c_contig>;

template <typename Make> Column column_of(Make make) {
    auto owned = std::make_unique<std::vector<std::int64_t>>();
    {
        const GilReleased release;
        *owned = make();
    }
    nb::capsule owner(owned.get(), [](void *data) noexcept {
        delete static_cast<std::vector<std::int64_t> *>(data);
    });
    std::vector<std::int64_t> *released = owned.release();
    return Column(released->data(), {released->size()}, owner);
}

} // namespace

void order(nb::module_ &module) {
    module.def(
        "live_max",
        [](const Columns &columns) {
            const std::size_t count = columns.shape(1);
            const auto row = [&](std::size_t index) {
                return std::span(columns.data() + index * count, count);
            };
            return column_of(
                [&] { return packing::live_max(place::Buffers{row(0), row(1), row(2), row(3)}); });
        },
        nb::arg("columns"), "Return the largest load of any step of each lifetime.");
    module.def(
        "sorted_rows",
        [](const std::vector<Key> &keys) {
            std::vector<std::span<const std::int64_t>> columns;
            for (const Key &key : keys) {
                if (key.shape(0) != keys.front().shape(0))
                    throw nb::value_error("keys have different lengths");
                columns.emplace_back(key.data(), key.shape(0));
            }
            return column_of([&] { return packing::sorted_rows(columns); });
        },
        nb::arg("keys"),
        "Return row indices in ascending order of keys; the first key counts most, ties go by "
        "index.");
}

} // namespace tightship::bind
