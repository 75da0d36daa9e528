/// Whole numbers from Python of any size and sign, so that an error can name the number it rejects.
#pragma once

#include "tightship/resource/memory_resource.hpp"

#include <bit>
#include <climits>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace tightship::bind {

/// Whole number: `value` is the number, or the nearest that fits; `source` is the Python object.
struct Count {
    long long value = 0;
    nanobind::handle source;
};

/// Bytes as a number, or as a text with a unit: `512MiB`.
struct Amount : Count {};

/// Largest number of bytes of a request: no address space is larger than 64 PiB.
constexpr long long kSizeMax = 1LL << 56;

inline std::string shown(const char *name, Count count) {
    return std::string("`") + name + "` (= " + nanobind::str(count.source).c_str() + ")";
}

/// Returns the number if it is at least `least`; otherwise throws an error that names the argument
/// `name`.
inline size_t at_least(long long least, const char *name, Count count) {
    if (count.value < least || count.value > kSizeMax)
        throw resource::Misuse(shown(name, count) + " must be from " + std::to_string(least) +
                               " to 2**56.");
    return static_cast<size_t>(count.value);
}

/// Reads a text as `tightship.quantity` does, with the errors of that.
inline size_t at_least(long long least, const char *name, Amount amount) {
    if (PyUnicode_Check(amount.source.ptr())) [[unlikely]] {
        const nanobind::object parse =
            nanobind::module_::import_("tightship.quantity").attr("parse_bytes");
        return nanobind::cast<size_t>(parse(amount.source, name, least));
    }
    return at_least(least, name, static_cast<Count>(amount));
}

inline size_t power_of_two(const char *name, Count count) {
    if (count.value <= 0 || count.value > kSizeMax ||
        !std::has_single_bit(static_cast<unsigned long long>(count.value))) [[unlikely]]
        throw resource::Misuse(shown(name, count) + " must be a power of two from 1 to 2**56.");
    return static_cast<size_t>(count.value);
}

/// Present name of a parameter of `where` that was given by an old one; warns.
inline std::string current_parameter(const char *where, nanobind::handle name) {
    const auto deprecated = nanobind::module_::import_("tightship.deprecated");
    return nanobind::cast<std::string>(deprecated.attr("current_parameter")(where, name));
}

} // namespace tightship::bind

namespace nanobind::detail {

template <> struct type_caster<tightship::bind::Count> {
    NB_TYPE_CASTER(tightship::bind::Count, const_name("int"))

    bool from_python(handle source, uint8_t, cleanup_list *) noexcept {
        int overflow = 0;
        if (!PyLong_Check(source.ptr())) {
            PyObject *index = PyNumber_Index(source.ptr());
            if (index == nullptr) {
                PyErr_Clear();
                return false;
            }
            value.value = PyLong_AsLongLongAndOverflow(index, &overflow);
            Py_DECREF(index);
        } else {
            value.value = PyLong_AsLongLongAndOverflow(source.ptr(), &overflow);
        }
        if (overflow != 0)
            value.value = overflow > 0 ? LLONG_MAX : LLONG_MIN;
        value.source = source;
        return true;
    }
};

template <> struct type_caster<tightship::bind::Amount> {
    NB_TYPE_CASTER(tightship::bind::Amount, const_name("int | str"))

    bool from_python(handle source, uint8_t flags, cleanup_list *cleanup) noexcept {
        value.source = source;
        if (PyUnicode_Check(source.ptr()))
            return true;
        make_caster<tightship::bind::Count> number;
        if (!number.from_python(source, flags, cleanup))
            return false;
        value.value = number.value.value;
        return true;
    }
};

} // namespace nanobind::detail
