#include "bind.hpp"
#include "gil.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <variant>

#include "tightship/table.hpp"

namespace tightship::bind {
namespace {

namespace nb = nanobind;

using Given = nb::ndarray<const std::int64_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<nb::numpy, std::int64_t, nb::shape<-1>, nb::c_contig>;

Column to_numpy(table::Integers values) {
    auto owned = std::make_unique<table::Integers>(std::move(values));
    nb::capsule owner(owned.get(),
                      [](void *data) noexcept { delete static_cast<table::Integers *>(data); });
    table::Integers *released = owned.release();
    return Column(released->data(), {released->size()}, owner);
}

std::string_view view(const nb::bytes &content) {
    return {content.c_str(), content.size()};
}

std::span<const std::int64_t> span(const Given &values) {
    return {values.data(), values.shape(0)};
}

nb::typed<nb::list, nb::any> columns_of(table::Table &read) {
    nb::list columns;
    for (auto &column : read.columns) {
        if (auto *words = std::get_if<table::Words>(&column)) {
            nb::bytes text(words->text.data(), words->text.size());
            columns.append(nb::make_tuple(text, to_numpy(std::move(words->stop))));
        } else {
            columns.append(to_numpy(std::move(std::get<table::Integers>(column))));
        }
    }
    return columns;
}

void check(const nb::bytes &text, std::span<const std::int64_t> stop) {
    std::int64_t last = 0;
    for (const std::int64_t end : stop) {
        if (end < last || end > static_cast<std::int64_t>(text.size()))
            throw nb::value_error("a word stops before it starts or after the text");
        last = end;
    }
}

nb::bytes write_rows(const std::vector<std::pair<std::optional<nb::bytes>, Given>> &columns) {
    std::vector<table::Written> written;
    for (const auto &[text, values] : columns) {
        if (text)
            check(*text, span(values));
        if (values.shape(0) != columns.front().second.shape(0))
            throw nb::value_error("columns have different lengths");
        written.push_back({span(values), text ? text->c_str() : nullptr});
    }
    std::string rows;
    {
        const GilReleased release;
        rows = table::write_rows(written);
    }
    return nb::bytes(rows.data(), rows.size());
}

} // namespace

void table(nb::module_ &module) {
    nb::class_<table::Refusal>(module, "TableRefusal", "Reason and position of a fault in a table.")
        .def_prop_ro("fault", [](const table::Refusal &self) { return int(self.fault); })
        .def_ro("line", &table::Refusal::line)
        .def_ro("column", &table::Refusal::column)
        .def_prop_ro("text", [](const table::Refusal &self) {
            return nb::bytes(self.text.data(), self.text.size());
        });
    nb::class_<table::Header>(module, "TableHeader", "First line of a table.")
        .def_prop_ro("fields",
                     [](const table::Header &self) -> nb::typed<nb::list, nb::bytes> {
                         nb::list fields;
                         for (const std::string &field : self.fields)
                             fields.append(nb::bytes(field.data(), field.size()));
                         return fields;
                     })
        .def_ro("refusal", &table::Header::refusal);
    nb::class_<table::Table>(module, "Table", "Rows of a table, by column.")
        .def("take_columns", columns_of,
             "Return integers, or text and the stops of its words, for each column; once only.")
        .def(
            "lines", [](const table::Table &self) { return to_numpy(self.line); },
            "Return the line of each row, from 1.")
        .def_ro("refusal", &table::Table::refusal);
    module.def(
        "read_table_header",
        [](const nb::bytes &content) { return table::read_header(view(content)); },
        nb::arg("content"), "Read the fields of the first line that is not empty.");
    module.def(
        "read_table_rows",
        [](const nb::bytes &content, const table::Header &header, const std::vector<int> &kinds) {
            std::vector<table::Kind> checked;
            for (const int kind : kinds)
                checked.push_back(table::Kind(kind));
            const GilReleased release;
            return table::read_rows(view(content), header, checked);
        },
        nb::arg("content"), nb::arg("header"), nb::arg("kinds"),
        "Read the rows after the header. `kinds`: 0 integer, 1 integer or empty, 2 words, 3 "
        "ignored.");
    module.def(
        "first_repeated_word",
        [](const nb::bytes &text, const Given &stop) {
            check(text, span(stop));
            return table::first_repeat(view(text), span(stop));
        },
        nb::arg("text"), nb::arg("stop"),
        "Return the index of the first word that repeats an earlier one; their number if all "
        "differ.");
    module.def("write_table_rows", write_rows, nb::arg("columns"),
               "Write columns as CSV: (text, stops of its words), or (None, integers).");
}

} // namespace tightship::bind
