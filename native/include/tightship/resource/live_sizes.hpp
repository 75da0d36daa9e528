/// Requested sizes of the live blocks in one range of addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace tightship::resource {

/// Table of a byte for each granule of 32 bytes, touched only where blocks begin.
///
/// The first byte of a block is its size, up to 96, or a mark that the size follows in seven bits
/// of each of the next three, or seven, bytes; a block of such a size has enough granules. The
/// following bytes have the top bit set, which the first byte of a block never has.
class LiveSizes {
  public:
    explicit LiveSizes(size_t granule_count)
        : bytes_(static_cast<uint8_t *>(std::calloc(granule_count + kSpare, 1))) {
        if (bytes_ == nullptr)
            throw std::bad_alloc();
    }

    /// Records a block. REQUIRES: `size_bytes` is above 0, and no other size is set in the block's
    /// granules.
    void set(size_t first, size_t size_bytes) {
        const Code code = encode(size_bytes);
        std::memcpy(&bytes_[first], &code.bits, code.byte_count);
    }
    void clear(size_t first) { bytes_[first] = 0; }
    /// Returns whether a live block of exactly `size_bytes` begins at a granule.
    bool is(size_t first, size_t size_bytes) const {
        if (size_bytes - 1 >= kSizeMax)
            return false;
        const Code code = encode(size_bytes);
        uint64_t bits = 0;
        std::memcpy(&bits, &bytes_[first], code.byte_count);
        return bits == code.bits;
    }
    /// Returns the size of the live block that begins at a granule; 0 if none does.
    size_t at(size_t first) const {
        const uint8_t head = bytes_[first];
        if (head < kShort)
            return head;
        size_t size_bytes = 0;
        if (head <= kLong)
            for (size_t place = head == kShort ? 3 : 7; place > 0; --place)
                size_bytes = size_bytes << 7 | (bytes_[first + place] & 0x7F);
        return size_bytes;
    }
    /// Returns whether a live block begins at a granule.
    bool begins(size_t granule) const { return bytes_[granule] - 1U < kLong; }

  private:
    static constexpr size_t kDirect = 96;        // such blocks have three granules at most
    static constexpr uint8_t kShort = 0x7E;      // three bytes follow
    static constexpr uint8_t kLong = 0x7F;       // seven
    static constexpr size_t kShortMax = 1 << 21; // sizes below
    static constexpr size_t kSizeMax = (size_t{1} << 49) - 1;
    static constexpr size_t kSpare = sizeof(uint64_t);

    struct Code {
        uint64_t bits;
        size_t byte_count;
    };
    static Code encode(size_t size) {
        if (size <= kDirect)
            return {size, 1};
        const uint64_t three = (size & 0x7F) << 8 | (size & 0x3F80) << 9 | (size & 0x1FC000) << 10;
        if (size < kShortMax)
            return {three | 0x80808000 | kShort, 4};
        const uint64_t four = (size & 0xFE00000) << 11 | (size & 0x7F0000000) << 12 |
                              (size & 0x3F800000000) << 13 | (size & 0x1FC0000000000) << 14;
        return {four | three | 0x8080808080808000 | kLong, 8};
    }

    struct Free {
        void operator()(void *pointer) const { std::free(pointer); }
    };
    std::unique_ptr<uint8_t[], Free> bytes_;
};

} // namespace tightship::resource
