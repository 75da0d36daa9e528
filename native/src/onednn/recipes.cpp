#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/recipes.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace tightship::recipe {

namespace {

using onednn::Attributes;
using onednn::Dims;
using onednn::Library;
using onednn::MemoryDesc;

enum class Form : uint8_t { kNull, kAny, kStrides, kTag, kPart, kReshaped };

constexpr size_t kAxesMax = DNNL_MAX_NDIMS;
constexpr size_t kImageAxes = 5;
constexpr int64_t kBytesMax = int64_t{1} << 46;
constexpr int64_t kItemBytesMax = 8;

/// Throws unless lengths are positive and their product is within the limit.
void check_dims(const Dims &dims) {
    if (dims.empty() || dims.size() > kAxesMax)
        throw Error("A recipe has a layout of no axes, or of too many.");
    int64_t room = kBytesMax / kItemBytesMax;
    for (const int64_t length : dims) {
        if (length < 1 || length > room)
            throw Error("A recipe has a layout of an impossible shape.");
        room /= length;
    }
}

/// Throws unless the last element's offset is within the limit.
void check_strides(const Dims &dims, const Dims &strides) {
    if (strides.size() != dims.size())
        throw Error("A recipe has a layout with strides of another rank.");
    int64_t room = kBytesMax / kItemBytesMax;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        if (strides[axis] < 0 || strides[axis] > room / dims[axis])
            throw Error("A recipe has a layout with impossible strides.");
        room -= strides[axis] * (dims[axis] - 1);
    }
}

dnnl_data_type_t checked_dtype(uint8_t code) {
    if (code == dnnl_data_type_undef ||
        Library::get().data_type_size(static_cast<dnnl_data_type_t>(code)) == 0)
        throw Error("A recipe has a layout of no type.");
    return static_cast<dnnl_data_type_t>(code);
}

/// Describes `dims` in the layout of `tag`; null if that is not possible.
std::optional<MemoryDesc> tagged(const Dims &dims, dnnl_data_type_t dtype, int tag) {
    dnnl_memory_desc_t desc = nullptr;
    const dnnl_status_t status = Library::get().memory_desc_create_with_tag(
        &desc, static_cast<int>(dims.size()), dims.data(), dtype,
        static_cast<dnnl_format_tag_t>(tag));
    if (!Library::served(status, "describe an operand") || desc == nullptr)
        return std::nullopt;
    return MemoryDesc::adopt(desc);
}

/// Finds the tag whose layout of `dims` has the strides and blocks of `desc`; 0 if none does.
int tag_of(const MemoryDesc &desc, const Dims &dims) {
    const std::string wanted = desc.format();
    const Dims strides = desc.strides();
    for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
        const auto candidate = tagged(dims, desc.dtype(), tag);
        if (candidate && candidate->strides() == strides && candidate->format() == wanted)
            return tag;
    }
    return 0;
}

/// Infers from strides the shape that `desc` is a part of, and the offset of the part.
struct Whole {
    Dims dims, starts;
};

Whole whole_of(const MemoryDesc &desc) {
    const Dims dims = desc.dims(), strides = desc.strides(), blocks = desc.blocks();
    std::vector<size_t> order(dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t left, size_t right) { return strides[left] > strides[right]; });
    const auto item = static_cast<int64_t>(Library::get().data_type_size(desc.dtype()));
    int64_t left = desc.offset_bytes() / item;
    Whole whole{dims, Dims(dims.size(), 0)};
    for (size_t place = 0; place < order.size(); ++place) {
        const size_t axis = order[place];
        if (strides[axis] == 0)
            continue;
        whole.starts[axis] = left / strides[axis] * blocks[axis];
        left %= strides[axis];
        whole.dims[axis] = dims[axis] + whole.starts[axis];
        if (place > 0 && blocks[axis] > 1)
            whole.dims[axis] = strides[order[place - 1]] / strides[axis] * blocks[axis];
    }
    return whole;
}

bool encode_strides(Writer &writer, const MemoryDesc &desc, const Dims &dims) {
    const Dims strides = desc.strides();
    recipe::encode(writer, static_cast<uint8_t>(Form::kStrides));
    recipe::encode(writer, static_cast<uint8_t>(desc.dtype()));
    recipe::encode(writer, dims);
    recipe::encode(writer, strides);
    return true;
}

/// Writes a layout that has a tag; returns false, writing nothing, if it has none.
bool encode_tagged(Writer &writer, const MemoryDesc &desc, const Dims &dims) {
    const int tag = tag_of(desc, dims);
    if (tag == 0)
        return false;
    recipe::encode(writer, static_cast<uint8_t>(Form::kTag));
    recipe::encode(writer, static_cast<uint8_t>(desc.dtype()));
    recipe::encode(writer, dims);
    recipe::encode(writer, static_cast<uint32_t>(tag));
    return true;
}

/// Writes a layout without tag as one with a tag that has more axes, of length 1, as channels in
/// blocks have once an image of one pixel is a row; returns false if there is none.
bool encode_reshaped(Writer &writer, const MemoryDesc &desc) {
    for (Dims wider = desc.dims(); wider.size() < kImageAxes;) {
        wider.push_back(1);
        Writer whole;
        if (!encode_tagged(whole, desc.reshaped(wider), wider))
            continue;
        recipe::encode(writer, static_cast<uint8_t>(Form::kReshaped));
        const std::string bytes = whole.take();
        writer.put(bytes.data(), bytes.size());
        recipe::encode(writer, desc.dims());
        return true;
    }
    return false;
}

/// Writes a layout that is not a part; returns false, writing nothing, if it has no form.
bool encode_whole(Writer &writer, const MemoryDesc &desc, const Dims &dims) {
    if (desc.is_plain())
        return encode_strides(writer, desc, dims);
    return encode_tagged(writer, desc, dims) ||
           (dims == desc.dims() && desc.offset_bytes() == 0 && encode_reshaped(writer, desc));
}

/// Encodes a layout; empty if it cannot be encoded.
std::string layout_bytes(const MemoryDesc &desc) {
    Writer writer;
    if (desc.offset_bytes() == 0) {
        if (!encode_whole(writer, desc, desc.dims()))
            writer.fail();
        return writer.take();
    }
    const Whole whole = whole_of(desc);
    recipe::encode(writer, static_cast<uint8_t>(Form::kPart));
    if (!encode_whole(writer, desc, whole.dims))
        writer.fail();
    recipe::encode(writer, desc.dims());
    recipe::encode(writer, whole.starts);
    return writer.take();
}

MemoryDesc decode_tagged(Reader &reader, dnnl_data_type_t dtype, const Dims &dims) {
    const auto tag = recipe::decode<uint32_t>(reader);
    if (tag <= dnnl_format_tag_any || tag >= dnnl_format_tag_last)
        throw Error("A recipe has a layout of no known form.");
    auto desc = tagged(dims, dtype, static_cast<int>(tag));
    if (!desc)
        throw Error("A recipe has a layout that oneDNN refuses.");
    return std::move(*desc);
}

MemoryDesc decode_reshaped(Reader &reader) {
    if (static_cast<Form>(recipe::decode<uint8_t>(reader)) != Form::kTag)
        throw Error("A recipe has a layout of no known form.");
    const dnnl_data_type_t dtype = checked_dtype(recipe::decode<uint8_t>(reader));
    const auto wider = recipe::decode<Dims>(reader);
    check_dims(wider);
    const MemoryDesc whole = decode_tagged(reader, dtype, wider);
    const auto dims = recipe::decode<Dims>(reader);
    check_dims(dims);
    return whole.reshaped(dims);
}

MemoryDesc decode_part(Reader &reader) {
    const MemoryDesc whole = Codec<MemoryDesc>::decode(reader);
    const auto dims = recipe::decode<Dims>(reader), starts = recipe::decode<Dims>(reader);
    check_dims(dims);
    const Dims bounds = whole.is_null() ? Dims() : whole.dims();
    if (bounds.size() != dims.size() || starts.size() != dims.size())
        throw Error("A recipe has a part of another rank.");
    for (size_t axis = 0; axis < dims.size(); ++axis)
        if (starts[axis] < 0 || starts[axis] > bounds[axis] - dims[axis])
            throw Error("A recipe has a part that leaves its whole.");
    return whole.part(dims, starts);
}

} // namespace

void Codec<MemoryDesc>::encode(Writer &writer, const MemoryDesc &desc) {
    if (desc.is_null())
        return recipe::encode(writer, static_cast<uint8_t>(Form::kNull));
    if (desc.format() == "any") {
        recipe::encode(writer, static_cast<uint8_t>(Form::kAny));
        recipe::encode(writer, static_cast<uint8_t>(desc.dtype()));
        return recipe::encode(writer, desc.dims());
    }
    const std::string bytes = desc.format() == "opaque" ? std::string() : layout_bytes(desc);
    try {
        Reader reader(bytes);
        if (bytes.empty() || !(decode(reader) == desc))
            writer.fail();
    } catch (const std::runtime_error &) {
        writer.fail();
    }
    writer.put(bytes.data(), bytes.size());
}

MemoryDesc Codec<MemoryDesc>::decode(Reader &reader) {
    const auto form = static_cast<Form>(recipe::decode<uint8_t>(reader));
    if (form == Form::kNull)
        return {};
    if (form == Form::kPart)
        return decode_part(reader);
    if (form == Form::kReshaped)
        return decode_reshaped(reader);
    const dnnl_data_type_t dtype = checked_dtype(recipe::decode<uint8_t>(reader));
    const auto dims = recipe::decode<Dims>(reader);
    check_dims(dims);
    if (form == Form::kAny)
        return MemoryDesc::any(dims, dtype);
    if (form == Form::kStrides) {
        const auto strides = recipe::decode<Dims>(reader);
        check_strides(dims, strides);
        return MemoryDesc(dims, dtype, strides);
    }
    if (form != Form::kTag)
        throw Error("A recipe has a layout of no known form.");
    return decode_tagged(reader, dtype, dims);
}

void Codec<Attributes>::encode(Writer &writer, const Attributes &attributes) {
    recipe::encode(writer, static_cast<uint32_t>(attributes.operations().size()));
    for (const Attributes::Operation &operation : attributes.operations()) {
        recipe::encode(writer, static_cast<uint8_t>(operation.kind));
        recipe::encode(writer, operation.numbers);
        recipe::encode(writer, operation.factors);
        recipe::encode(writer, operation.operand);
    }
}

Attributes Codec<Attributes>::decode(Reader &reader) {
    using Kind = Attributes::Kind;
    Attributes attributes;
    const auto count = recipe::decode<uint32_t>(reader);
    for (uint32_t index = 0; index < count; ++index) {
        const auto kind = static_cast<Kind>(recipe::decode<uint8_t>(reader));
        const auto [first, second] = recipe::decode<std::array<int, 2>>(reader);
        const auto [alpha, beta] = recipe::decode<std::array<float, 2>>(reader);
        const auto operand = recipe::decode<MemoryDesc>(reader);
        if (kind == Kind::kSum)
            attributes.add_sum(alpha);
        else if (kind == Kind::kEltwise)
            attributes.add_eltwise(static_cast<dnnl_alg_kind_t>(first), alpha, beta);
        else if (kind == Kind::kBinary && !operand.is_null())
            attributes.add_binary(static_cast<dnnl_alg_kind_t>(first), operand);
        else if (kind == Kind::kScale)
            attributes.scale(first, second);
        else if (kind == Kind::kZeroPoint)
            attributes.zero_point(first, second);
        else
            throw Error("A recipe has a post-operation that there is not.");
    }
    return attributes;
}

void Codec<std::vector<const MemoryDesc *>>::encode(
    Writer &writer, const std::vector<const MemoryDesc *> &operands) {
    recipe::encode(writer, static_cast<uint32_t>(operands.size()));
    for (const MemoryDesc *operand : operands)
        recipe::encode(writer, operand == nullptr ? MemoryDesc() : *operand);
}

OwnedOperands Codec<std::vector<const MemoryDesc *>>::decode(Reader &reader) {
    return OwnedOperands(recipe::decode<std::vector<MemoryDesc>>(reader));
}

} // namespace tightship::recipe

#endif
