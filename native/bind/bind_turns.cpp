#include "bind.hpp"

#include "tightship/driver/turns.hpp"

#include <algorithm>
#include <nanobind/stl/optional.h>
#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using driver::Turns;
using Seconds = std::chrono::duration<double>;

/// More than anybody waits, and as nanoseconds no overflow.
constexpr double kPatienceMax = 1e9;

bool take(Turns &self, std::optional<double> timeout_s) {
    if (self.take_free())
        return true;
    std::optional<std::chrono::nanoseconds> patience;
    if (timeout_s)
        patience = std::chrono::duration_cast<std::chrono::nanoseconds>(
            Seconds(std::clamp(*timeout_s, 0.0, kPatienceMax)));
    const nb::gil_scoped_release release;
    return self.take(patience);
}

} // namespace

void turns(nb::module_ &module) {
    nb::class_<Turns>(module, "Turns",
                      "How many runs there may be at once, whoever asks for them. Who waits gets "
                      "a turn in the order of asking.")
        .def(
            "__init__",
            [](Turns *self, int count) {
                if (count < 1)
                    throw std::invalid_argument("There must be a turn.");
                new (self) Turns(count);
            },
            "count"_a)
        .def_prop_ro("count", &Turns::count, "Of all turns.")
        .def_prop_ro("is_free", &Turns::is_free, "Whether one could be taken without a wait.")
        .def_prop_ro("waiting_count", &Turns::waiting_count, "How many wait for one.")
        .def("take", &take, "timeout_s"_a = nb::none(),
             "Waits for a turn, without the GIL; False if none came in time.")
        .def("give_back", &Turns::give_back, "The run has ended.");
}

} // namespace tightship::bind
