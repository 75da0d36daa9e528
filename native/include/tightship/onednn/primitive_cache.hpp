/// Cache of compiled primitives, shared by all programs of the process.
#pragma once

#include "tightship/primitive/built_once.hpp"
#include "tightship/primitive/memory.hpp"

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"

namespace tightship::onednn {

/// Everything that a compiled primitive depends on, besides the library, of which there is one.
struct PrimitiveKey {
    std::string signature; ///< operation, operands, attributes, implementation
    int threads;

    bool operator==(const PrimitiveKey &other) const = default;
};

struct PrimitiveKeyHash {
    size_t operator()(const PrimitiveKey &key) const {
        return std::hash<std::string>()(key.signature) + static_cast<size_t>(key.threads);
    }
};

/// Compiled primitive, with a manager of its scratch for runs without a plan.
class CachedPrimitive {
  public:
    CachedPrimitive(const PrimitiveDesc &desc, std::shared_ptr<primitive::PoolManager> pools,
                    primitive::Keep keep);

    const_dnnl_primitive_t get() const { return primitive_.get(); }
    size_t scratch_bytes() const { return scratch_bytes_; }
    /// Manager of its scratch, which is object 0.
    primitive::MemoryManager &memory() { return memory_; }

    size_t size_bytes() const { return size_bytes_; } ///< of code and description, estimated
    /// Gives its pools back.
    void retire() { memory_.retire(); }

  private:
    Primitive primitive_;
    size_t size_bytes_;
    size_t scratch_bytes_;
    primitive::MemoryManager memory_;
};

class PrimitiveCache
    : public primitive::BuiltOnce<PrimitiveKey, CachedPrimitive, PrimitiveKeyHash> {
  public:
    /// `pools` and `keep` manage the scratch of primitives that run without a plan.
    PrimitiveCache(primitive::Capacity capacity, std::shared_ptr<primitive::PoolManager> pools,
                   primitive::Keep keep)
        : BuiltOnce(capacity), pools_(std::move(pools)), keep_(keep) {}

    /// Cache that programs share; it is never destroyed.
    static PrimitiveCache &of_process();

    /// Returns the primitive of a description that was made for `threads`. The calling thread
    /// compiles it if the cache lacks it.
    Use obtain(const PrimitiveDesc &desc, int threads);

    const std::shared_ptr<primitive::PoolManager> &pools() const { return pools_; }
    primitive::Keep keep() const { return keep_; }

  private:
    std::shared_ptr<primitive::PoolManager> pools_;
    primitive::Keep keep_;
};

} // namespace tightship::onednn

#endif
