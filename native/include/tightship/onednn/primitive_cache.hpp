/// Compiled primitives, shared by every program of the process that describes the same.
#pragma once

#include "tightship/primitive/built_once.hpp"
#include "tightship/primitive/memory.hpp"

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"

namespace tightship::onednn {

/// Everything that a compiled primitive depends on; the library is the process's one.
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

/// A compiled primitive, and who hands out its scratch where no plan has it.
class CachedPrimitive {
  public:
    CachedPrimitive(const PrimitiveDesc &desc, std::shared_ptr<primitive::PoolManager> pools,
                    primitive::Keep keep);

    const_dnnl_primitive_t get() const { return primitive_.get(); }
    size_t scratch_bytes() const { return scratch_bytes_; }
    /// Object 0 is its scratch.
    primitive::MemoryManager &memory() { return memory_; }

    size_t size_bytes() const { return size_bytes_; } ///< of code and description, about
    /// Returns its pools.
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
    /// `pools` and `keep`: where scratch comes from, for primitives that are not planned.
    PrimitiveCache(primitive::Capacity capacity, std::shared_ptr<primitive::PoolManager> pools,
                   primitive::Keep keep)
        : BuiltOnce(capacity), pools_(std::move(pools)), keep_(keep) {}

    /// The one that programs share; it never ends.
    static PrimitiveCache &of_process();

    /// The primitive of a description that was made for so many threads. The calling thread
    /// compiles it where it is not there.
    Use obtain(const PrimitiveDesc &desc, int threads);

    const std::shared_ptr<primitive::PoolManager> &pools() const { return pools_; }
    primitive::Keep keep() const { return keep_; }

  private:
    std::shared_ptr<primitive::PoolManager> pools_;
    primitive::Keep keep_;
};

} // namespace tightship::onednn

#endif
