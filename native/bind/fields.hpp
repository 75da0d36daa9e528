/// Representations of objects that only hold fields.
#pragma once

#include <nanobind/nanobind.h>

namespace tightship::bind {

/// The `repr` of a class of counters: its name and fields, in the order of their definition.
inline nanobind::str repr_of_fields(nanobind::handle self) {
    namespace nb = nanobind;
    const nb::handle type = self.type();
    nb::list fields;
    for (nb::handle name : nb::object(type.attr("__dict__"))) {
        if (nb::cast<bool>(name.attr("startswith")("_")))
            continue;
        fields.append(nb::str("{}={}").format(name, nb::getattr(self, name)));
    }
    return nb::str(
        nb::str("{}({})").format(type.attr("__name__"), nb::str(", ").attr("join")(fields)));
}

} // namespace tightship::bind
