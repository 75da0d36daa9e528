/// Elements of a size, whatever their type, at any address.
#pragma once

#include <cstdint>
#include <cstring>

namespace tightship::kernels {

struct Wide {
    uint64_t low, high;
};

template <class Item> Item load(const char *from) {
    Item item;
    std::memcpy(&item, from, sizeof item);
    return item;
}

template <class Item> void store(char *to, const Item &item) {
    std::memcpy(to, &item, sizeof item);
}

/// Calls `body` with an unsigned integer of `item_bytes`, a pair of them for 16.
template <class Body> void with_item(int64_t item_bytes, const Body &body) {
    switch (item_bytes) {
    case 1:
        return body(uint8_t{});
    case 2:
        return body(uint16_t{});
    case 4:
        return body(uint32_t{});
    case 8:
        return body(uint64_t{});
    default:
        return body(Wide{});
    }
}

} // namespace tightship::kernels
