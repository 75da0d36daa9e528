#include "tightship/primitive/lifetimes.hpp"

#include "tightship/packing/place.hpp"
#include "tightship/resource/memory_resource.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace tightship::primitive {

namespace {

constexpr int64_t kAlive = -1;

} // namespace

uint32_t LifetimeManager::start_lifetime() {
    objects_.push_back({{}, event_++, kAlive});
    ++alive_count_;
    return static_cast<uint32_t>(objects_.size() - 1);
}

void LifetimeManager::end_lifetime(uint32_t object, Temporary need) {
    if (object >= objects_.size() || objects_[object].stop != kAlive)
        throw resource::Misuse("Object " + std::to_string(object) +
                               " is not alive; a lifetime is started once and ended once.");
    objects_[object].need = need;
    objects_[object].stop = event_++;
    --alive_count_;
}

PoolLayout LifetimeManager::layout() const {
    if (!are_all_finalized())
        throw resource::Misuse("The lifetimes of " + std::to_string(alive_count_) + " of " +
                               std::to_string(objects_.size()) +
                               " objects have no end; end them before memory is reserved.");
    return placed(objects_);
}

PoolLayout BlobLifetimeManager::placed(const std::vector<Object> &objects) const {
    std::vector<size_t> order(objects.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
        return objects[left].need.size_bytes > objects[right].need.size_bytes;
    });
    std::vector<Temporary> regions;
    std::vector<size_t> region_of(objects.size());
    std::vector<std::vector<size_t>> held; // by region
    const auto meet = [&](size_t left, size_t right) {
        return objects[left].start < objects[right].stop &&
               objects[right].start < objects[left].stop;
    };
    for (const size_t object : order) {
        size_t region = held.size(); // the smallest that is free meanwhile: the last made
        for (size_t each = held.size(); each-- > 0;) {
            const auto is_met = [&](size_t other) { return meet(object, other); };
            if (std::none_of(held[each].begin(), held[each].end(), is_met)) {
                region = each;
                break;
            }
        }
        if (region == held.size()) {
            held.emplace_back();
            regions.push_back(objects[object].need);
        }
        held[region].push_back(object);
        size_t &alignment = regions[region].alignment;
        alignment = std::max(alignment, objects[object].need.alignment);
        region_of[object] = region;
    }
    PoolLayout layout;
    std::vector<size_t> starts;
    for (const auto &[size_bytes, alignment] : regions) {
        starts.push_back(resource::align_up(layout.need.size_bytes, alignment));
        layout.need.size_bytes = starts.back() + size_bytes;
        layout.need.alignment = std::max(layout.need.alignment, alignment);
    }
    for (const size_t region : region_of)
        layout.offsets.push_back(starts[region]);
    return layout;
}

PoolLayout OffsetLifetimeManager::placed(const std::vector<Object> &objects) const {
    if (objects.empty())
        return {};
    std::vector<int64_t> size, start, stop, alignment;
    for (const Object &object : objects) {
        size.push_back(static_cast<int64_t>(object.need.size_bytes));
        start.push_back(object.start);
        stop.push_back(object.stop);
        alignment.push_back(static_cast<int64_t>(object.need.alignment));
    }
    const place::Buffers buffers{size, start, stop, alignment};
    std::vector<int64_t> order(objects.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t left, int64_t right) { return size[left] > size[right]; });
    place::Offsets offsets = place::best_gap(buffers, order);
    if (place::Offsets other = place::lowest_first(buffers, order);
        place::peak(buffers, other) < place::peak(buffers, offsets))
        offsets = std::move(other);
    PoolLayout layout;
    layout.need = {static_cast<size_t>(place::peak(buffers, offsets)),
                   static_cast<size_t>(*std::ranges::max_element(alignment))};
    for (const int64_t offset : offsets)
        layout.offsets.push_back(static_cast<size_t>(offset));
    return layout;
}

} // namespace tightship::primitive
