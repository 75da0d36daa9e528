#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/memory_desc.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace tightship::onednn {

namespace {

template <class T> T query(const_dnnl_memory_desc_t desc, dnnl_query_t what) {
    T result{};
    Library::check(Library::get().memory_desc_query(desc, what, &result), "query a layout");
    return result;
}

Dims query_dims(const_dnnl_memory_desc_t desc, dnnl_query_t what, size_t count) {
    const auto *values = query<const dnnl_dims_t *>(desc, what);
    return Dims(*values, *values + count);
}

MemoryDesc tagged(const Dims &dims, dnnl_data_type_t dtype, dnnl_format_tag_t tag) {
    dnnl_memory_desc_t desc = nullptr;
    Library::check(Library::get().memory_desc_create_with_tag(&desc, static_cast<int>(dims.size()),
                                                              dims.data(), dtype, tag),
                   "describe an operand");
    return MemoryDesc::adopt(desc);
}

/// Layouts that lowering requests by name.
constexpr std::pair<std::string_view, dnnl_format_tag_t> kTags[] = {
    {"aBc8b", dnnl_aBc8b},     {"aBcd8b", dnnl_aBcd8b},   {"aBcde8b", dnnl_aBcde8b},
    {"aBc16b", dnnl_aBc16b},   {"aBcd16b", dnnl_aBcd16b}, {"aBcde16b", dnnl_aBcde16b},
    {"Acdb16a", dnnl_Acdb16a}, {"Acdb32a", dnnl_Acdb32a}, {"BA16a64b", dnnl_BA16a64b},
};

/// Counts the bytes of a blocked layout's elements as oneDNN does, without data after them.
int64_t element_bytes(const MemoryDesc &desc) {
    const Dims strides = desc.strides();
    const Dims blocks = desc.blocks();
    const Dims padded = query_dims(desc.get(), dnnl_query_padded_dims, strides.size());
    int64_t count = 1, block = 1;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
        count = std::max(count, padded[axis] / blocks[axis] * strides[axis]);
        block *= blocks[axis];
    }
    return (count == 1 ? block : count) *
           static_cast<int64_t>(Library::get().data_type_size(desc.dtype()));
}

/// Numbers layouts that shape, type and strides do not tell apart, in the order first seen.
size_t rank_of(const MemoryDesc &desc) {
    static std::mutex mutex;
    static auto *const met = new std::vector<MemoryDesc>;
    const std::lock_guard lock(mutex);
    const auto found = std::find(met->begin(), met->end(), desc);
    if (found == met->end()) {
        met->push_back(desc);
        return met->size() - 1;
    }
    return static_cast<size_t>(found - met->begin());
}

/// Returns the strides of a layout with strides; none of another one.
Dims strides_of(const_dnnl_memory_desc_t desc) {
    if (query<dnnl_format_kind_t>(desc, dnnl_query_format_kind) != dnnl_blocked)
        return {};
    const auto count = static_cast<size_t>(query<int>(desc, dnnl_query_ndims_s32));
    return query_dims(desc, dnnl_query_strides, count);
}

/// Returns whether two descriptions are one to every primitive. The library calls two equal that
/// differ in the stride of an axis of length 1, but some of its kernels accept only one of them.
bool is_same(const_dnnl_memory_desc_t one, const_dnnl_memory_desc_t other) {
    return Library::get().memory_desc_equal(one, other) != 0 &&
           strides_of(one) == strides_of(other);
}

/// Descriptions that are alive, so that equal ones are one object.
class Interned {
  public:
    static Interned &of_process() {
        static auto *const interned = new Interned; // outlives descriptions of static lifetime
        return *interned;
    }

    /// Returns the description equal to `desc` that is alive; else registers its own.
    std::shared_ptr<const dnnl_memory_desc> find_or_add(const MemoryDesc &desc) {
        const size_t hash = desc.hash();
        const std::lock_guard lock(mutex_);
        for (auto [entry, end] = alive_.equal_range(hash); entry != end;) {
            const auto other = entry->second.lock();
            if (other == nullptr) {
                entry = alive_.erase(entry);
                continue;
            }
            if (is_same(other.get(), desc.get()))
                return other;
            ++entry;
        }
        if (alive_.size() >= sweep_at_) {
            std::erase_if(alive_, [](const auto &entry) { return entry.second.expired(); });
            sweep_at_ = std::max(kSweepMin, 2 * alive_.size());
        }
        alive_.emplace(hash, desc.shared());
        return desc.shared();
    }

  private:
    static constexpr size_t kSweepMin = 256;
    std::mutex mutex_;
    std::unordered_multimap<size_t, std::weak_ptr<const dnnl_memory_desc>> alive_;
    size_t sweep_at_ = kSweepMin;
};

void destroy(dnnl_memory_desc_t desc) {
    Library::get().memory_desc_destroy(desc);
}

} // namespace

MemoryDesc::MemoryDesc(const Dims &dims, dnnl_data_type_t dtype, const Dims &strides) {
    dnnl_memory_desc_t desc = nullptr;
    Library::check(Library::get().memory_desc_create_with_strides(
                       &desc, static_cast<int>(dims.size()), dims.data(), dtype, strides.data()),
                   "describe an operand by strides");
    *this = adopt(desc);
}

MemoryDesc MemoryDesc::any(const Dims &dims, dnnl_data_type_t dtype) {
    return tagged(dims, dtype, dnnl_format_tag_any);
}

MemoryDesc MemoryDesc::named(const Dims &dims, dnnl_data_type_t dtype, const std::string &format) {
    for (const auto &[name, tag] : kTags)
        if (name == format)
            return tagged(dims, dtype, tag);
    throw Error("name the layout " + format, dnnl_invalid_arguments);
}

MemoryDesc MemoryDesc::adopt(dnnl_memory_desc_t owned) {
    MemoryDesc result;
    result.desc_ = {owned, [](dnnl_memory_desc_t desc) { destroy(desc); }};
    result.desc_ = Interned::of_process().find_or_add(result);
    return result;
}

MemoryDesc MemoryDesc::copy_of(const_dnnl_memory_desc_t other) {
    if (other == nullptr)
        return {};
    dnnl_memory_desc_t desc = nullptr;
    Library::check(Library::get().memory_desc_clone(&desc, other), "copy a layout");
    return adopt(desc);
}

bool MemoryDesc::operator==(const MemoryDesc &other) const {
    return desc_ == other.desc_ ||
           Library::get().memory_desc_equal(desc_.get(), other.desc_.get()) != 0;
}

size_t MemoryDesc::hash() const {
    auto result = static_cast<size_t>(dtype());
    for (const int64_t length : dims())
        result = result * 1000003 + static_cast<size_t>(length);
    return result;
}

Dims MemoryDesc::dims() const {
    const auto count = static_cast<size_t>(query<int>(desc_.get(), dnnl_query_ndims_s32));
    return query_dims(desc_.get(), dnnl_query_dims, count);
}

Dims MemoryDesc::strides() const {
    const auto count = static_cast<size_t>(query<int>(desc_.get(), dnnl_query_ndims_s32));
    return query_dims(desc_.get(), dnnl_query_strides, count);
}

dnnl_data_type_t MemoryDesc::dtype() const {
    return query<dnnl_data_type_t>(desc_.get(), dnnl_query_data_type);
}

int64_t MemoryDesc::size_bytes() const {
    return desc_ == nullptr
               ? 0
               : static_cast<int64_t>(Library::get().memory_desc_get_size(desc_.get()));
}

int64_t MemoryDesc::end_bytes() const {
    if (desc_ == nullptr || offset_bytes() == 0)
        return size_bytes();
    const Dims padded = query_dims(desc_.get(), dnnl_query_padded_dims, dims().size());
    const Dims outer = strides(), inner = blocks();
    int64_t last = 0, block = 1;
    for (size_t axis = 0; axis < padded.size(); ++axis) {
        last += (padded[axis] / inner[axis] - 1) * outer[axis];
        block *= inner[axis];
    }
    const auto item = static_cast<int64_t>(Library::get().data_type_size(dtype()));
    return offset_bytes() + (last + block) * item;
}

bool MemoryDesc::is_plain() const {
    return query<dnnl_format_kind_t>(desc_.get(), dnnl_query_format_kind) == dnnl_blocked &&
           query<int>(desc_.get(), dnnl_query_inner_nblks_s32) == 0;
}

int64_t MemoryDesc::offset_bytes() const {
    const auto elements = query<int64_t>(desc_.get(), dnnl_query_submemory_offset_s64);
    return elements * static_cast<int64_t>(Library::get().data_type_size(dtype()));
}

Dims MemoryDesc::blocks() const {
    Dims result(dims().size(), 1);
    const auto count = static_cast<size_t>(query<int>(desc_.get(), dnnl_query_inner_nblks_s32));
    const Dims sizes = query_dims(desc_.get(), dnnl_query_inner_blks, count);
    const Dims axes = query_dims(desc_.get(), dnnl_query_inner_idxs, count);
    for (size_t block = 0; block < count; ++block)
        result[static_cast<size_t>(axes[block])] *= sizes[block];
    return result;
}

std::string MemoryDesc::format() const {
    const auto kind = query<dnnl_format_kind_t>(desc_.get(), dnnl_query_format_kind);
    if (kind != dnnl_blocked)
        return kind == dnnl_format_kind_any ? "any" : "opaque";
    const auto block_count =
        static_cast<size_t>(query<int>(desc_.get(), dnnl_query_inner_nblks_s32));
    const Dims blocks = query_dims(desc_.get(), dnnl_query_inner_blks, block_count);
    const Dims axes = query_dims(desc_.get(), dnnl_query_inner_idxs, block_count);
    const Dims outer = strides();
    const Dims lengths = dims();
    std::vector<size_t> order(outer.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
        return outer[left] != outer[right] ? outer[left] > outer[right]
                                           : lengths[left] > lengths[right];
    });
    std::string text;
    for (const size_t axis : order) {
        const bool blocked = std::find(axes.begin(), axes.end(), axis) != axes.end();
        text += static_cast<char>((blocked ? 'A' : 'a') + axis);
    }
    for (size_t block = 0; block < block_count; ++block)
        text += std::to_string(blocks[block]) + static_cast<char>('a' + axes[block]);
    return text;
}

std::string MemoryDesc::signature() const {
    if (desc_ == nullptr)
        return "null;";
    const std::string layout = format();
    std::string text = std::to_string(dtype()) + layout;
    for (const int64_t length : dims())
        text += "," + std::to_string(length);
    if (layout == "any")
        return text + ";";
    if (layout != "opaque")
        for (const int64_t stride : strides())
            text += "/" + std::to_string(stride);
    // Some integer layouts append compensation, which their kernel subtracts from its sums.
    const int64_t rest = layout == "opaque" ? 1 : size_bytes() - element_bytes(*this);
    if (rest != 0 && rest != offset_bytes())
        text += "#" + std::to_string(rank_of(*this));
    return text + "+" + std::to_string(offset_bytes()) + ";";
}

MemoryDesc MemoryDesc::reshaped(const Dims &dims) const {
    dnnl_memory_desc_t desc = nullptr;
    Library::check(Library::get().memory_desc_reshape(&desc, desc_.get(),
                                                      static_cast<int>(dims.size()), dims.data()),
                   "reshape a layout");
    return adopt(desc);
}

MemoryDesc MemoryDesc::permuted(const std::vector<int> &permutation) const {
    dnnl_memory_desc_t desc = nullptr;
    Library::check(Library::get().memory_desc_permute_axes(&desc, desc_.get(), permutation.data()),
                   "permute a layout");
    return adopt(desc);
}

MemoryDesc MemoryDesc::part(const Dims &dims, const Dims &offsets) const {
    dnnl_memory_desc_t desc = nullptr;
    Library::check(Library::get().memory_desc_create_submemory(&desc, desc_.get(), dims.data(),
                                                               offsets.data()),
                   "take a part of a layout");
    return adopt(desc);
}

Dims dense_strides(const Dims &dims) {
    Dims strides(dims.size(), 1);
    for (size_t axis = dims.size(); axis-- > 1;)
        strides[axis - 1] = strides[axis] * std::max<int64_t>(dims[axis], 1);
    return strides;
}

} // namespace tightship::onednn

#endif
