/// Blocks that record how they must be filled, and an exit with a message if something is wrong.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace {

constexpr size_t kThreads = 4;

void require(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "%s\n", what);
        std::exit(1);
    }
}

/// Start of a block: the byte that fills the rest, and its length.
struct Cookie {
    uint32_t size_bytes;
    uint8_t filling;
};

void fill(void *block, size_t size_bytes, uint8_t filling) {
    std::memset(block, filling, size_bytes);
    *static_cast<Cookie *>(block) = {static_cast<uint32_t>(size_bytes), filling};
}

size_t check(void *block) {
    const Cookie cookie = *static_cast<Cookie *>(block);
    for (size_t index = sizeof(Cookie); index < cookie.size_bytes; ++index)
        require(static_cast<uint8_t *>(block)[index] == cookie.filling,
                "the contents of a block have changed");
    return cookie.size_bytes;
}

size_t size_for(std::minstd_rand &random, size_t size_max) {
    return sizeof(Cookie) + random() % (size_max - sizeof(Cookie) + 1);
}

} // namespace
