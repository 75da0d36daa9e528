#include "tightship/gguf/block_parts.hpp"

#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tightship::gguf {

namespace {

constexpr size_t kNibbleBytes = kBlock / 2;

/// Writes 16 bytes of the integers 2i and 2i + 1, of 16 bytes of the integers i and i + 16.
void join_neighbours(const uint8_t *block, uint8_t *integers) {
#ifdef __SSE2__
    const __m128i nibble = _mm_set1_epi8(0x0F), low_byte = _mm_set1_epi16(0x00FF);
    const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block));
    const __m128i first = _mm_and_si128(both, nibble);
    const __m128i last = _mm_and_si128(_mm_srli_epi16(both, 4), nibble);
    const auto joined = [&](__m128i half) {
        return _mm_and_si128(_mm_or_si128(half, _mm_srli_epi16(half, 4)), low_byte);
    };
    _mm_storeu_si128(reinterpret_cast<__m128i *>(integers),
                     _mm_packus_epi16(joined(first), joined(last)));
#else
    for (size_t i = 0; i < kNibbleBytes / 2; ++i) {
        const uint8_t even = block[2 * i], odd = block[2 * i + 1];
        integers[i] = static_cast<uint8_t>((even & 0x0F) | (odd & 0x0F) << 4);
        integers[kNibbleBytes / 2 + i] = static_cast<uint8_t>(even >> 4 | (odd & 0xF0));
    }
#endif
}

} // namespace

void nibbles_of(const uint8_t *blocks, size_t count, uint8_t *integers) {
    for (size_t i = 0; i < count; ++i)
        join_neighbours(blocks + i * (kScaleBytes + kNibbleBytes) + kScaleBytes,
                        integers + i * kNibbleBytes);
}

void bytes_of(const uint8_t *blocks, size_t count, uint8_t *integers) {
    for (size_t i = 0; i < count; ++i) {
        const uint8_t *block = blocks + i * (kScaleBytes + kBlock) + kScaleBytes;
        for (size_t k = 0; k < kBlock; ++k)
            integers[i * kBlock + k] = static_cast<uint8_t>(block[k] ^ 128);
    }
}

void scales_of(const uint8_t *blocks, size_t bits, size_t count, uint8_t *scales) {
    const size_t size = kScaleBytes + kBlock * bits / 8;
    for (size_t i = 0; i < count; ++i)
        std::memcpy(scales + i * kScaleBytes, blocks + i * size, kScaleBytes);
}

} // namespace tightship::gguf
