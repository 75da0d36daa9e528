#include "bind.hpp"
#include "edges.hpp"
#include "gil.hpp"

#include "tightship/flow/checkpoints.hpp"

#include <array>
#include <limits>
#include <memory>

namespace tightship::bind {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using AtomRows = nb::ndarray<const std::int64_t, nb::shape<7, -1>, nb::c_contig, nb::device::cpu>;
using AtomMatrices =
    nb::ndarray<const std::int64_t, nb::shape<2, -1, -1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kChainMax = 1000; // numbers of atoms fit 16 bits, and a table the memory

std::span<const std::int64_t> amounts(const std::int64_t *data, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        if (data[i] < 0 || data[i] > std::numeric_limits<std::int64_t>::max() >> 13)
            throw nb::value_error("an amount of an atom is below 0 or 2^50 and more");
    return {data, count};
}

std::unique_ptr<flow::CheckpointTable>
chain_table(const AtomRows &rows, const AtomMatrices &matrices, std::int64_t slots) {
    const std::size_t count = rows.shape(1);
    if (count > kChainMax || slots < 0 || slots > 4096)
        throw nb::value_error("a table has at most 1000 atoms and from 0 to 4096 slots");
    if (matrices.shape(1) != count || matrices.shape(2) != count)
        throw nb::value_error("matrices do not have a row and a column for each atom");
    std::array<std::span<const std::int64_t>, 9> columns;
    for (std::size_t i = 0; i < 7; ++i)
        columns[i] = amounts(rows.data() + i * count, count);
    for (std::size_t i = 0; i < 2; ++i)
        columns[7 + i] = amounts(matrices.data() + i * count * count, count * count);
    const flow::Atoms atoms{columns[0], columns[1], columns[2], columns[3], columns[4],
                            columns[5], columns[6], columns[7], columns[8]};
    const GilReleased release;
    return std::make_unique<flow::CheckpointTable>(atoms, slots);
}

/// Table with the number of slots that it was made for.
struct SlotTable {
    std::unique_ptr<flow::CheckpointTable> table;
    std::int64_t slots;

    SlotTable(const AtomRows &rows, const AtomMatrices &matrices, std::int64_t slots)
        : table(chain_table(rows, matrices, slots)), slots(slots) {}

    std::int64_t operations(std::int64_t number) const {
        if (number < 0 || number > slots)
            throw nb::index_error("the table was made for fewer slots");
        return table->operations(number);
    }
};

} // namespace

void checkpoints(nb::module_ &module) {
    nb::class_<SlotTable>(module, "CheckpointTable",
                          "Cheapest ways to run a chain of atoms forward and back.")
        .def(nb::init<const AtomRows &, const AtomMatrices &, std::int64_t>(), "rows"_a,
             "matrices"_a, "slots"_a)
        .def("operations", &SlotTable::operations, "slots"_a,
             "Return the operations within a number of slots; -1 if these are not enough.")
        .def(
            "passes",
            [](const SlotTable &self, std::int64_t number) {
                if (self.operations(number) < 0)
                    throw nb::value_error("no way was found within these slots");
                return to_numpy(self.table->passes(number));
            },
            "slots"_a, "Return pairs in order: sweep 0, whole 1, last 2 or back 3; and the atom.");
}

} // namespace tightship::bind
