#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"
#include "tightship/recipe.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace tightship::onednn {

namespace {

/// Prints a number's bits, so that different numbers never print the same.
std::string exact(float number) {
    return std::to_string(std::bit_cast<uint32_t>(number));
}

} // namespace

Attributes::Attributes() : Attributes(nullptr) {
    Library &library = Library::get();
    Library::check(library.primitive_attr_create(&attr_), "create attributes");
    Library::check(library.post_ops_create(&post_ops_), "create post-operations");
    Library::check(library.primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user),
                   "leave the scratchpad to the caller");
}

Attributes::~Attributes() {
    if (post_ops_ != nullptr)
        Library::get().post_ops_destroy(post_ops_);
    if (attr_ != nullptr)
        Library::get().primitive_attr_destroy(attr_);
}

void Attributes::record(Operation operation) {
    if (recipe::is_recording)
        operations_.push_back(std::move(operation));
}

void Attributes::add_sum(float scale) {
    Library::check(Library::get().post_ops_append_sum(post_ops_, scale, 0, dnnl_data_type_undef),
                   "append a sum");
    signature_ += "sum" + exact(scale) + ";";
    record({Kind::kSum, {}, {scale, 0.0F}, {}});
}

void Attributes::add_eltwise(dnnl_alg_kind_t algorithm, float alpha, float beta) {
    Library::check(Library::get().post_ops_append_eltwise(post_ops_, algorithm, alpha, beta),
                   "append an elementwise operation");
    signature_ +=
        "eltwise" + std::to_string(algorithm) + "," + exact(alpha) + "," + exact(beta) + ";";
    record({Kind::kEltwise, {algorithm, 0}, {alpha, beta}, {}});
}

void Attributes::add_binary(dnnl_alg_kind_t algorithm, const MemoryDesc &operand) {
    Library::check(Library::get().post_ops_append_binary(post_ops_, algorithm, operand.get()),
                   "append a binary operation");
    signature_ += "binary" + std::to_string(algorithm) + operand.signature();
    record({Kind::kBinary, {algorithm, 0}, {}, operand});
}

void Attributes::scale(int argument, int mask) {
    Library::check(Library::get().primitive_attr_set_scales_mask(attr_, argument, mask),
                   "set a scale");
    signature_ += "scale" + std::to_string(argument) + "," + std::to_string(mask) + ";";
    factors_.emplace_back(DNNL_ARG_ATTR_SCALES | argument, mask);
    record({Kind::kScale, {argument, mask}, {}, {}});
}

void Attributes::zero_point(int argument, int mask) {
    Library::check(Library::get().primitive_attr_set_zero_points_mask(attr_, argument, mask),
                   "set a zero point");
    signature_ += "zero" + std::to_string(argument) + "," + std::to_string(mask) + ";";
    factors_.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | argument, mask);
    record({Kind::kZeroPoint, {argument, mask}, {}, {}});
}

const_dnnl_primitive_attr_t Attributes::get() const {
    Library::check(Library::get().primitive_attr_set_post_ops(attr_, post_ops_),
                   "attach post-operations");
    return attr_;
}

PrimitiveDesc::~PrimitiveDesc() {
    for (const dnnl_primitive_desc_t owned : {desc_, forward_})
        if (owned != nullptr)
            Library::get().primitive_desc_destroy(owned);
}

std::string PrimitiveDesc::implementation() const {
    const char *text = "";
    Library::check(Library::get().primitive_desc_query(desc_, dnnl_query_impl_info_str, 0, &text),
                   "name an implementation");
    return text;
}

int64_t PrimitiveDesc::scratchpad_bytes() const {
    return operand(DNNL_ARG_SCRATCHPAD).size_bytes();
}

MemoryDesc PrimitiveDesc::operand(int argument) const {
    const auto desc =
        Library::get().primitive_desc_query_md(desc_, dnnl_query_exec_arg_md, argument);
    if (desc == nullptr || Library::get().memory_desc_get_size(desc) == 0)
        return {};
    return MemoryDesc::copy_of(desc);
}

namespace {

/// Lists arguments of post-operations with an operand; of others the library answers anything.
std::vector<int> post_operands(const_dnnl_primitive_desc_t desc) {
    Library &library = Library::get();
    const_dnnl_primitive_attr_t attributes = nullptr;
    Library::check(library.primitive_desc_get_attr(desc, &attributes), "read attributes");
    const_dnnl_post_ops_t operations = nullptr;
    Library::check(library.primitive_attr_get_post_ops(attributes, &operations),
                   "read post-operations");
    std::vector<int> all;
    for (int index = 0; index < library.post_ops_len(operations); ++index)
        if (library.post_ops_get_kind(operations, index) == dnnl_binary)
            all.push_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(index) | DNNL_ARG_SRC_1);
    return all;
}

/// Lists the scale and shift arguments that a normalization was described without, although the
/// library describes them.
std::vector<int> unused_parameters(const_dnnl_primitive_desc_t desc) {
    unsigned flags = dnnl_use_scale | dnnl_use_shift;
    if (Library::get().primitive_desc_query(desc, dnnl_query_flags, 0, &flags) != dnnl_success)
        return {};
    std::vector<int> all;
    if ((flags & dnnl_use_scale) == 0)
        all.push_back(DNNL_ARG_SCALE);
    if ((flags & dnnl_use_shift) == 0)
        all.push_back(DNNL_ARG_SHIFT);
    return all;
}

} // namespace

std::vector<std::pair<int, int64_t>> PrimitiveDesc::reach() const {
    constexpr int kSourcesMax = 4096;
    const std::vector<int> unused = unused_parameters(desc_);
    std::vector<std::pair<int, int64_t>> all;
    const auto add = [&](int argument) {
        if (std::ranges::find(unused, argument) != unused.end())
            return false;
        const int64_t end = operand(argument).end_bytes();
        if (end > 0)
            all.emplace_back(argument, end);
        return end > 0;
    };
    for (const int argument :
         {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_SRC_2, DNNL_ARG_DST_0, DNNL_ARG_WEIGHTS_0,
          DNNL_ARG_WEIGHTS_1, DNNL_ARG_BIAS, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE, DNNL_ARG_SCALE,
          DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS,
          DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT, DNNL_ARG_SHIFT})
        add(argument);
    for (int index = 0; index < kSourcesMax && add(DNNL_ARG_MULTIPLE_SRC + index); ++index) {
    }
    for (const int argument : post_operands(desc_))
        add(argument);
    for (const auto &[argument, mask] : factors_) {
        const Dims dims = operand(argument & (DNNL_ARG_ATTR_SCALES - 1)).dims();
        int64_t count = 1;
        for (size_t axis = 0; axis < dims.size(); ++axis)
            count *= (mask >> axis & 1) != 0 ? dims[axis] : 1;
        all.emplace_back(argument, count * static_cast<int64_t>(sizeof(float)));
    }
    return all;
}

bool PrimitiveDesc::meets() const {
    dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
    Library::check(Library::get().primitive_desc_query(desc_, dnnl_query_primitive_kind, 0, &kind),
                   "tell the kind of a primitive");
    dnnl_prop_kind_t what = dnnl_prop_kind_undef;
    return kind == dnnl_convolution &&
           Library::get().primitive_desc_query(desc_, dnnl_query_prop_kind, 0, &what) ==
               dnnl_success &&
           what == dnnl_backward_weights;
}

bool PrimitiveDesc::next_implementation() {
    constexpr auto kWhat = "describe another implementation";
    Library::require_room(kWhat);
    if (!Library::served(Library::get().primitive_desc_next_impl(desc_), kWhat))
        return false;
    ++skipped_;
    return true;
}

Primitive::Primitive(const PrimitiveDesc &desc) {
    constexpr auto kWhat = "compile a primitive";
    Library::require_room(kWhat);
    Library::check(Library::get().primitive_create(&primitive_, desc.get()), kWhat);
}

Primitive::~Primitive() {
    if (primitive_ != nullptr)
        Library::get().primitive_destroy(primitive_);
}

} // namespace tightship::onednn

#endif
