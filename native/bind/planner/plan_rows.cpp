#include "bind.hpp"
#include "columns.hpp"
#include "gil.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "tightship/plan_rows.hpp"

namespace tightship::bind {
namespace {

namespace nb = nanobind;

/// Columns, names (text and stops) if there are any, begin and end of the array.
nb::object read_rows(const nb::bytes &content) {
    std::optional<plan_rows::Rows> rows;
    {
        const GilReleased release;
        rows = plan_rows::read({content.c_str(), content.size()});
    }
    if (!rows)
        return nb::none();
    nb::list columns;
    for (auto &column : rows->columns)
        columns.append(to_numpy(std::move(column)));
    nb::object names = nb::none();
    if (!rows->names.stop.empty())
        names = nb::make_tuple(nb::bytes(rows->names.text.data(), rows->names.text.size()),
                               to_numpy(std::move(rows->names.stop)));
    return nb::make_tuple(columns, names, rows->begin, rows->end);
}

nb::bytes write_rows(const std::vector<Row> &columns, const std::optional<nb::bytes> &text,
                     const Row &stops) {
    std::vector<std::span<const std::int64_t>> spans;
    for (const Row &column : columns)
        spans.emplace_back(column.data(), column.size());
    const std::size_t count = spans.empty() ? 0 : spans.front().size();
    bool is_right = spans.size() == plan_rows::kFields.size() && (!text || stops.size() == count);
    for (const auto &column : spans)
        is_right &= column.size() == count;
    std::int64_t last = 0;
    for (std::size_t i = 0; text && i < stops.size(); ++i)
        is_right &= std::exchange(last, stops.data()[i]) <= stops.data()[i];
    if (!is_right || (text && last > static_cast<std::int64_t>(text->size())))
        throw nb::value_error("columns and names do not go together");
    std::string rows;
    {
        const GilReleased release;
        rows =
            plan_rows::write(spans, text ? text->c_str() : nullptr, {stops.data(), stops.size()});
    }
    return nb::bytes(rows.data(), rows.size());
}

} // namespace

void plan_file_rows(nb::module_ &module) {
    module.def("read_plan_rows", read_rows, nb::arg("content"),
               nb::sig("def read_plan_rows(content: bytes) -> tuple[list[NDArray[numpy.int64]], "
                       "tuple[bytes, NDArray[numpy.int64]] | None, int, int] | None"),
               "Read the array `buffers` of a plan file: its columns, names, begin and end; None "
               "if it is not plain.");
    module.def("write_plan_rows", write_rows, nb::arg("columns"), nb::arg("text").none(),
               nb::arg("stops"), "Write the elements of that array from columns and names.");
}

} // namespace tightship::bind
