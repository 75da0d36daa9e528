/// Copies of rows of elements, one by one, or as a whole if both sides are dense.
#pragma once

#include "tightship/kernels/item.hpp"

namespace tightship::kernels {

/// Copies bytes that are adjacent on both sides and do not overlap.
inline void copy_bytes(const char *from, char *to, int64_t size_bytes) {
    if (size_bytes >= 16) {
        std::memcpy(to, from, static_cast<size_t>(size_bytes));
        return;
    }
    for (int64_t place = 0; place < size_bytes; ++place)
        to[place] = from[place];
}

template <class Item> void fill_span(const Item &item, char *to, int64_t length) {
    for (int64_t index = 0; index < length; ++index)
        store(to + index * static_cast<int64_t>(sizeof(Item)), item);
}

/// Copies every second item to a dense row, or back: constant steps compile to loops over whole
/// registers.
template <class Item, int64_t kFrom, int64_t kTo>
void copy_apart(const char *from, char *to, int64_t length) {
    for (int64_t index = 0; index < length; ++index)
        store(to + index * kTo, load<Item>(from + index * kFrom));
}

/// Copies `length` items, a step apart on each side.
template <class Item>
void copy_span(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t length) {
    constexpr int64_t item = sizeof(Item);
    if (from_step == item && to_step == item)
        return copy_bytes(from, to, length * item);
    if (from_step == 0 && to_step == item && length > 0)
        return fill_span(load<Item>(from), to, length);
    if (from_step == 2 * item && to_step == item)
        return copy_apart<Item, 2 * item, item>(from, to, length);
    if (from_step == item && to_step == 2 * item)
        return copy_apart<Item, item, 2 * item>(from, to, length);
    for (int64_t index = 0; index < length; ++index)
        store(to + index * to_step, load<Item>(from + index * from_step));
}

} // namespace tightship::kernels
