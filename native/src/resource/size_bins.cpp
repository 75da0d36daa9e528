#include "tightship/resource/size_bins.hpp"

#include <bit>
#include <new>

namespace tightship::resource {

void FreeChain::push(FreeNode *node) {
    node->previous = nullptr;
    node->next = head_;
    if (head_ != nullptr)
        head_->previous = node;
    head_ = node;
}

void FreeChain::remove(FreeNode *node) {
    if (node->previous != nullptr)
        node->previous->next = node->next;
    else
        head_ = node->next;
    if (node->next != nullptr)
        node->next->previous = node->previous;
}

SizeBins::SizeBins() : bins_(static_cast<FreeChain *>(std::calloc(kBinCount, sizeof(FreeChain)))) {
    if (bins_ == nullptr)
        throw std::bad_alloc();
}

void SizeBins::insert(FreeNode *node) {
    const size_t bin = node->size_bytes / kFreeGranule;
    if (bin >= kBinCount) {
        large_.emplace(node->size_bytes, node);
        return;
    }
    bins_[bin].push(node);
    level0_[bin / 64] |= uint64_t{1} << bin % 64;
    level1_[bin / 4096] |= uint64_t{1} << bin / 64 % 64;
    level2_ |= uint64_t{1} << bin / 4096;
}

void SizeBins::remove(FreeNode *node) {
    const size_t bin = node->size_bytes / kFreeGranule;
    if (bin >= kBinCount) {
        large_.erase({node->size_bytes, node});
        return;
    }
    bins_[bin].remove(node);
    if (bins_[bin].head() != nullptr)
        return;
    level0_[bin / 64] &= ~(uint64_t{1} << bin % 64);
    if (level0_[bin / 64] != 0)
        return;
    level1_[bin / 4096] &= ~(uint64_t{1} << bin / 64 % 64);
    if (level1_[bin / 4096] == 0)
        level2_ &= ~(uint64_t{1} << bin / 4096);
}

/// Returns the first bin from `bin` on that has blocks; `kBinCount` if none has.
size_t SizeBins::find(size_t bin) const {
    if (const uint64_t bits = level0_[bin / 64] & ~uint64_t{0} << bin % 64; bits != 0)
        return bin / 64 * 64 + std::countr_zero(bits);
    size_t word = bin / 64 + 1;
    if (word < kBinCount / 64) {
        uint64_t bits = level1_[word / 64] & ~uint64_t{0} << word % 64;
        if (bits == 0) {
            const size_t group = word / 64 + 1;
            const uint64_t groups = group < 64 ? level2_ & ~uint64_t{0} << group : 0;
            if (groups == 0)
                return kBinCount;
            word = static_cast<size_t>(std::countr_zero(groups)) * 64;
            bits = level1_[word / 64];
        }
        word = word / 64 * 64 + std::countr_zero(bits);
        return word * 64 + std::countr_zero(level0_[word]);
    }
    return kBinCount;
}

FreeNode *SizeBins::best(size_t size_bytes) const {
    const size_t bin = size_bytes / kFreeGranule;
    if (bin < kBinCount)
        if (const size_t found = find(bin); found < kBinCount)
            return bins_[found].head();
    const auto found = large_.lower_bound({size_bytes, nullptr});
    return found == large_.end() ? nullptr : found->second;
}

} // namespace tightship::resource
