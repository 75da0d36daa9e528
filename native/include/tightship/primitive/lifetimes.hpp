/// Lifetimes of the temporaries of a primitive, and a layout in which they share memory.
///
///   start_lifetime ──> object 0 ┌─────────┐
///   start_lifetime ──> object 1      ┌────────┐        end_lifetime gives its size
///   start_lifetime ──> object 2             ┌─────┐    0 and 2 never overlap: one place for both
#pragma once

#include "tightship/primitive/need.hpp"

#include <cstdint>
#include <vector>

namespace tightship::primitive {

/// Size and alignment of a pool, and the offset of each object in it. All objects share one block,
/// so that a pool serves every layout that is not larger, whatever its objects are.
struct PoolLayout {
    Temporary need;
    std::vector<size_t> offsets;

    size_t size_bytes() const { return need.size_bytes; }
};

/// Records lifetimes. One thread configures it; afterwards it does not change.
class LifetimeManager {
  public:
    LifetimeManager() = default;
    LifetimeManager(const LifetimeManager &) = delete;
    LifetimeManager &operator=(const LifetimeManager &) = delete;
    virtual ~LifetimeManager() = default;

    /// Starts the lifetime of a new object; returns its number.
    uint32_t start_lifetime();
    /// Ends the lifetime of an object. Throws `resource::Misuse` unless it is alive.
    void end_lifetime(uint32_t object, Temporary need);
    bool are_all_finalized() const { return alive_count_ == 0; }

    /// Places objects that are alive together apart. Throws `resource::Misuse` while one is alive.
    PoolLayout layout() const;

  protected:
    struct Object {
        Temporary need;
        int64_t start; ///< counted in calls that start or end a lifetime
        int64_t stop;
    };

  private:
    virtual PoolLayout placed(const std::vector<Object> &objects) const = 0;

    std::vector<Object> objects_;
    int64_t event_ = 0;
    size_t alive_count_ = 0;
};

/// Uses as few regions as objects are alive at once, each as large as its largest object; regions
/// follow one another.
class BlobLifetimeManager final : public LifetimeManager {
    PoolLayout placed(const std::vector<Object> &objects) const override;
};

/// Uses one region, with objects at offsets that the planner chooses.
class OffsetLifetimeManager final : public LifetimeManager {
    PoolLayout placed(const std::vector<Object> &objects) const override;
};

} // namespace tightship::primitive
