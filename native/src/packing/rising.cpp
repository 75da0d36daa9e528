#include "tightship/packing/rising.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace tightship::packing {
namespace {

constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

} // namespace

Rows rising(std::span<const std::int64_t> key) {
    Rows rows(key.size());
    std::iota(rows.begin(), rows.end(), 0U);
    if (key.size() < kDigits) {
        std::stable_sort(rows.begin(), rows.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return key[a] < key[b]; });
        return rows;
    }
    const auto [least, most] = std::minmax_element(key.begin(), key.end());
    const auto base = static_cast<std::uint64_t>(*least);
    const std::uint64_t range = static_cast<std::uint64_t>(*most) - base;
    Rows sorted(key.size());
    for (int shift = 0; shift < 64 && range >> shift != 0; shift += kDigitBits) {
        const auto digit = [&](std::uint32_t row) {
            return (static_cast<std::uint64_t>(key[row]) - base) >> shift & (kDigits - 1);
        };
        std::array<std::uint32_t, kDigits> position{};
        for (const std::uint32_t row : rows)
            ++position[digit(row)];
        std::exclusive_scan(position.begin(), position.end(), position.begin(), 0U);
        for (const std::uint32_t row : rows)
            sorted[position[digit(row)]++] = row;
        rows.swap(sorted);
    }
    return rows;
}

} // namespace tightship::packing
