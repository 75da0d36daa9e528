/// Texts as GGUF files have them: each behind its length, a little-endian number of 8 bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tightship::gguf {

static_assert(std::endian::native == std::endian::little, "lengths are read as they are stored");

/// Calls `take` with each of so many texts; returns whether they are there.
template <class Take> bool each_text(std::span<const uint8_t> stored, size_t count, Take &&take) {
    for (size_t i = 0; i < count; ++i) {
        uint64_t size = 0;
        if (stored.size() < sizeof size)
            return false;
        std::memcpy(&size, stored.data(), sizeof size);
        stored = stored.subspan(sizeof size);
        if (size > stored.size())
            return false;
        if (!take(std::string_view(reinterpret_cast<const char *>(stored.data()), size)))
            return false;
        stored = stored.subspan(size);
    }
    return true;
}

} // namespace tightship::gguf
