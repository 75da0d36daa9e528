/// Blocks of 32 integers behind a scale of two bytes, as GGUF files have them, taken apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tightship::gguf {

constexpr size_t kBlock = 32;
constexpr size_t kScaleBytes = 2;

/// Writes the integers of blocks of 4 bits, two neighbours in a byte: a block of the file has the
/// first half of its integers in the low bits.
void nibbles_of(const uint8_t *blocks, size_t count, uint8_t *integers);

/// Writes the integers of blocks of 8 bits as unsigned ones, 128 more than they are.
void bytes_of(const uint8_t *blocks, size_t count, uint8_t *integers);

/// Writes the scales of blocks of so many bits.
void scales_of(const uint8_t *blocks, size_t bits, size_t count, uint8_t *scales);

} // namespace tightship::gguf
