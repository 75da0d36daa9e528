#include "tightship/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tightship {
namespace {

using State = std::array<uint32_t, 8>;
using Blocks = void (*)(State &, const uint8_t *, size_t);

constexpr size_t kRounds = 64;
/// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::array<uint32_t, kRounds> kConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t *bytes) {
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void add_portably(State &state, const uint8_t *bytes, size_t count) {
    for (; count > 0; --count, bytes += Sha256::kBlockBytes) {
        std::array<uint32_t, kRounds> words;
        for (size_t i = 0; i < 16; ++i)
            words[i] = big_endian(bytes + 4 * i);
        for (size_t i = 16; i < kRounds; ++i) {
            const uint32_t far = words[i - 15], near = words[i - 2];
            words[i] = words[i - 16] + words[i - 7] +
                       (std::rotr(far, 7) ^ std::rotr(far, 18) ^ far >> 3) +
                       (std::rotr(near, 17) ^ std::rotr(near, 19) ^ near >> 10);
        }
        auto [a, b, c, d, e, f, g, h] = state;
        for (size_t i = 0; i < kRounds; ++i) {
            const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                   ((e & f) ^ (~e & g)) + kConstants[i] + words[i];
            const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                                    ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + first;
            d = c, c = b, b = a, a = first + second;
        }
        const State added{a, b, c, d, e, f, g, h};
        for (size_t i = 0; i < state.size(); ++i)
            state[i] += added[i];
    }
}

#if defined(__x86_64__)
bool has_instructions() {
    constexpr unsigned kSha = 1u << 29;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kSha) != 0 &&
           __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
}

/// The processor has the words a, b, e, f in one register and c, d, g, h in another.
[[gnu::target("sha,sse4.1,ssse3")]] void add_by_instructions(State &state, const uint8_t *bytes,
                                                             size_t count) {
    const __m128i swapped = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const auto word = [&state](size_t i) { return static_cast<int>(state[i]); };
    __m128i abef = _mm_set_epi32(word(0), word(1), word(4), word(5));
    __m128i cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7));
    for (; count > 0; --count, bytes += Sha256::kBlockBytes) {
        const __m128i first = abef, second = cdgh;
        __m128i words[4];
        for (size_t i = 0; i < 4; ++i)
            words[i] = _mm_shuffle_epi8(
                _mm_loadu_si128(reinterpret_cast<const __m128i *>(bytes + 16 * i)), swapped);
#pragma GCC unroll 16
        for (size_t i = 0; i < kRounds / 4; ++i) {
            const __m128i now = words[i % 4], next = words[(i + 1) % 4];
            const __m128i later = words[(i + 2) % 4], last = words[(i + 3) % 4];
            const auto *constants = reinterpret_cast<const __m128i *>(kConstants.data() + 4 * i);
            const __m128i sum = _mm_add_epi32(now, _mm_load_si128(constants));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
            const __m128i middle = _mm_alignr_epi8(last, later, 4);
            words[i % 4] =
                _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, next), middle), last);
        }
        abef = _mm_add_epi32(abef, first);
        cdgh = _mm_add_epi32(cdgh, second);
    }
    alignas(16) std::array<uint32_t, 4> low, high;
    _mm_store_si128(reinterpret_cast<__m128i *>(low.data()), abef);
    _mm_store_si128(reinterpret_cast<__m128i *>(high.data()), cdgh);
    state = {low[3], low[2], high[3], high[2], low[1], low[0], high[1], high[0]};
}
#endif

void add(State &state, const uint8_t *bytes, size_t count) {
#if defined(__x86_64__)
    static const Blocks blocks = has_instructions() ? add_by_instructions : add_portably;
    blocks(state, bytes, count);
#else
    add_portably(state, bytes, count);
#endif
}

} // namespace

void Sha256::update(std::span<const uint8_t> bytes) {
    const size_t held = size_bytes_ % kBlockBytes;
    size_bytes_ += bytes.size();
    if (held > 0) {
        const size_t taken = std::min(kBlockBytes - held, bytes.size());
        std::copy_n(bytes.begin(), taken, rest_.begin() + held);
        bytes = bytes.subspan(taken);
        if (held + taken < kBlockBytes)
            return;
        add(state_, rest_.data(), 1);
    }
    add(state_, bytes.data(), bytes.size() / kBlockBytes);
    const auto left = bytes.last(bytes.size() % kBlockBytes);
    std::copy(left.begin(), left.end(), rest_.begin());
}

Sha256::Digest Sha256::digest() const {
    constexpr size_t kLengthBytes = 8;
    std::array<uint8_t, 2 * kBlockBytes> last{};
    const size_t held = size_bytes_ % kBlockBytes;
    std::copy_n(rest_.begin(), held, last.begin());
    last[held] = 0x80;
    const size_t blocks = held + 1 + kLengthBytes <= kBlockBytes ? 1 : 2;
    for (size_t i = 0; i < kLengthBytes; ++i)
        last[blocks * kBlockBytes - 1 - i] = static_cast<uint8_t>(size_bytes_ * 8 >> 8 * i);
    State state = state_;
    add(state, last.data(), blocks);
    Digest found;
    for (size_t i = 0; i < found.size(); ++i)
        found[i] = static_cast<uint8_t>(state[i / 4] >> 8 * (3 - i % 4));
    return found;
}

} // namespace tightship
