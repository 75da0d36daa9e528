/// SHA-256 (FIPS 180-4), so that digests of models do not load OpenSSL into a process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tightship {

/// Digest of bytes that come in parts.
class Sha256 {
  public:
    using Digest = std::array<uint8_t, 32>;
    static constexpr size_t kBlockBytes = 64;

    /// Adds bytes to those before.
    void update(std::span<const uint8_t> bytes);

    /// Returns the digest of all bytes so far; more may follow.
    Digest digest() const;

  private:
    std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<uint8_t, kBlockBytes> rest_{};
    uint64_t size_bytes_ = 0;
};

} // namespace tightship
