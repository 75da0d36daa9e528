#include "bind.hpp"
#include "columns.hpp"
#include "gil.hpp"

#include "tightship/search/fit.hpp"

namespace tightship::bind {

namespace nb = nanobind;

namespace {

const char *name_of(search::Verdict verdict) {
    switch (verdict) {
    case search::Verdict::fits:
        return "fits";
    case search::Verdict::infeasible:
        return "infeasible";
    case search::Verdict::open:
        return "open";
    }
    return "";
}

search::Answer fit(const Columns &columns, const Row &pins, std::int64_t capacity,
                   std::int64_t effort, int threads, const StopFlag *stop) {
    if (capacity < 0)
        throw nb::value_error("capacity is negative");
    if (pins.size() != 0 && pins.size() != columns.shape(1))
        throw nb::value_error("there must be a pin for each buffer, or none");
    const GilReleased release;
    return search::fit(buffers_of(columns), {pins.data(), pins.size()}, capacity,
                       {effort, threads, stop});
}

} // namespace

void search(nb::module_ &module) {
    nb::class_<search::Answer>(module, "Fit", "Result of the exact search.")
        .def_prop_ro("verdict",
                     [](const search::Answer &answer) { return name_of(answer.verdict); })
        .def_prop_ro(
            "offsets", [](const search::Answer &answer) { return to_numpy(answer.offsets); },
            nb::rv_policy::automatic)
        .def_prop_ro(
            "conflict", [](const search::Answer &answer) { return to_numpy(answer.conflict); },
            nb::rv_policy::automatic)
        .def_ro("bound", &search::Answer::bound)
        .def_ro("effort", &search::Answer::effort)
        .def_ro("nodes", &search::Answer::nodes);
    module.def("search_fit", &fit, nb::arg("columns"), nb::arg("pins"), nb::arg("capacity"),
               nb::arg("effort"), nb::arg("threads"), nb::arg("stop").none(),
               "Search offsets of buffers within a capacity.");
}

} // namespace tightship::bind
