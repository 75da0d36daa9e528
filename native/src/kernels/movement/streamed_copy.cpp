#include "tightship/kernels/movement/streamed_copy.hpp"

#include "cpu/this_cpu.hpp"
#include "tightship/kernels/spans.hpp"

#if defined(__SSE2__)
#include <algorithm>
#include <emmintrin.h>
#endif

namespace tightship::kernels {

#if defined(__SSE2__)

namespace {

/// Pages copied side by side, which makes as many streams to and from memory.
constexpr int64_t kPages = 4;
constexpr int64_t kPage = 4096;
constexpr int64_t kLine = 64;

void stream_line(const char *from, char *to) {
    const auto *source = reinterpret_cast<const __m128i *>(from);
    auto *target = reinterpret_cast<__m128i *>(to);
    const __m128i first = _mm_loadu_si128(source), second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2), fourth = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, first);
    _mm_stream_si128(target + 1, second);
    _mm_stream_si128(target + 2, third);
    _mm_stream_si128(target + 3, fourth);
}

void copy_string(const char *from, char *to, int64_t size_bytes) {
#if defined(__x86_64__)
    asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(size_bytes) : : "memory");
#else
    copy_bytes(from, to, size_bytes);
#endif
}

} // namespace

void stream_bytes(const char *from, char *to, int64_t size_bytes) {
    static const bool is_one_instruction = copies_strings();
    if (is_one_instruction)
        return copy_string(from, to, size_bytes);
    const auto before = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kLine);
    int64_t at = std::min(size_bytes, before);
    copy_bytes(from, to, at);
    for (; size_bytes - at >= kPages * kPage; at += kPages * kPage)
        for (int64_t line = at; line < at + kPage; line += kLine)
            for (int64_t page = 0; page < kPages; ++page)
                stream_line(from + line + page * kPage, to + line + page * kPage);
    copy_bytes(from + at, to + at, size_bytes - at);
    _mm_sfence();
}

#else

void stream_bytes(const char *from, char *to, int64_t size_bytes) {
    copy_bytes(from, to, size_bytes);
}

#endif

} // namespace tightship::kernels
