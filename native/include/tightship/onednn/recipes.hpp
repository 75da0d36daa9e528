/// Codecs of layouts and attributes of primitives for recipes.
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"
#include "tightship/recipe.hpp"

#include <memory>

namespace tightship::recipe {

/// Encodes a layout by its strides, by one of oneDNN's tags, or as a part of one of these; any
/// other fails the recipe. Decoding accepts at most 2^46 bytes and 12 axes.
template <> struct Codec<onednn::MemoryDesc> {
    static void encode(Writer &writer, const onednn::MemoryDesc &desc);
    static onednn::MemoryDesc decode(Reader &reader);
};

template <> struct Codec<onednn::Attributes> {
    static void encode(Writer &writer, const onednn::Attributes &attributes);
    static onednn::Attributes decode(Reader &reader);
};

/// Owner of decoded operands, some of which may be missing.
class OwnedOperands {
  public:
    explicit OwnedOperands(std::vector<onednn::MemoryDesc> owned) : owned_(std::move(owned)) {
        for (const onednn::MemoryDesc &desc : owned_)
            pointers_.push_back(desc.is_null() ? nullptr : &desc);
    }
    operator const std::vector<const onednn::MemoryDesc *> &() const { return pointers_; }

  private:
    std::vector<onednn::MemoryDesc> owned_;
    std::vector<const onednn::MemoryDesc *> pointers_;
};

template <> struct Codec<std::vector<const onednn::MemoryDesc *>> {
    static void encode(Writer &writer, const std::vector<const onednn::MemoryDesc *> &operands);
    static OwnedOperands decode(Reader &reader);
};

} // namespace tightship::recipe

#endif
