#include "tightship/search/order.hpp"

#include <algorithm>
#include <numeric>

namespace tightship::search {
namespace {

constexpr std::array<std::array<Key, 3>, Orders::kSorts> kSortKeys{{
    {kLifetime, kArea, kLoad},
    {kLoad, kArea, kLifetime},
    {kLoad, kLifetime, kArea},
    {kArea, kLoad, kLifetime},
    {kSize, kLoad, kLifetime},
    {kArea, kLifetime, kLoad},
}};

/// Positions, of 1000 buffers, that chance may add, and that the greatest blame takes away.
constexpr std::int64_t kChance = 50;
constexpr std::int64_t kBlame = 800;

/// Returns a pseudorandom function of a counter. Source: Steele, Lea, Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014.
std::uint64_t lot(std::uint64_t counter) {
    std::uint64_t mixed = counter * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

} // namespace

template <class Unit> Keys keys_of(const Instance<Unit> &instance) {
    std::vector<double> load(instance.sections(), 0);
    for (int section = 0; section < instance.sections(); ++section)
        for (const int member : instance.members_of(section))
            load[section] += static_cast<double>(instance.size[member]);
    Keys keys;
    for (int i = 0; i < instance.count(); ++i) {
        const auto size = static_cast<double>(instance.size[i]);
        const auto lifetime = static_cast<double>(instance.lifetime[i]);
        keys[kLoad].push_back(
            *std::max_element(load.begin() + instance.begin[i], load.begin() + instance.end[i]));
        keys[kLifetime].push_back(lifetime);
        keys[kArea].push_back(size * lifetime);
        keys[kSize].push_back(size);
    }
    return keys;
}

Orders::Orders(const Keys &keys) {
    for (std::size_t sort = 0; sort < sorted_.size(); ++sort) {
        std::vector<int> &order = sorted_[sort];
        order.resize(keys[kLoad].size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            for (const Key key : kSortKeys[sort])
                if (keys[key][a] != keys[key][b])
                    return keys[key][a] > keys[key][b];
            return false;
        });
    }
}

std::vector<int> Orders::ranks(std::int64_t attempt, std::span<const std::int64_t> blame) const {
    const std::vector<int> &order = sorted_[attempt % kSorts];
    const auto count = static_cast<std::int64_t>(order.size());
    std::vector<int> rank(count);
    if (attempt < kSorts) {
        for (std::int64_t place = 0; place < count; ++place)
            rank[order[place]] = static_cast<int>(place);
        return rank;
    }
    const std::int64_t most = std::max<std::int64_t>(*std::ranges::max_element(blame), 1);
    std::vector<std::pair<std::int64_t, int>> disturbed(count);
    for (std::int64_t place = 0; place < count; ++place) {
        const std::uint64_t drawn = lot((static_cast<std::uint64_t>(attempt) << 32) + place);
        const auto chance = static_cast<std::int64_t>(drawn % (kChance * count + 1));
        const std::int64_t blamed = kBlame * count * (blame[order[place]] * 1024 / most) / 1024;
        disturbed[place] = {1000 * place + chance - blamed, order[place]};
    }
    std::stable_sort(disturbed.begin(), disturbed.end(),
                     [](const auto &a, const auto &b) { return a.first < b.first; });
    for (std::int64_t place = 0; place < count; ++place)
        rank[disturbed[place].second] = static_cast<int>(place);
    return rank;
}

template Keys keys_of(const Instance<std::int32_t> &);
template Keys keys_of(const Instance<std::int64_t> &);

} // namespace tightship::search
