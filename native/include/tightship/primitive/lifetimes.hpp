/// Who is alive with whom among the temporaries of a primitive, and the memory they can share.
///
///   start_lifetime ──> object 0 ┌─────────┐
///   start_lifetime ──> object 1      ┌────────┐        end_lifetime says how large it was
///   start_lifetime ──> object 2             ┌─────┐    0 and 2 never meet: one place for both
#pragma once

#include "tightship/primitive/need.hpp"

#include <cstdint>
#include <vector>

namespace tightship::primitive {

/// What a pool must have, and the offset of each object in it. One block for all objects, so that a
/// pool serves every layout that is not larger, whatever its objects are.
struct PoolLayout {
    Temporary need;
    std::vector<size_t> offsets;

    size_t size_bytes() const { return need.size_bytes; }
};

/// Configured by one thread; afterwards it does not change.
class LifetimeManager {
  public:
    LifetimeManager() = default;
    LifetimeManager(const LifetimeManager &) = delete;
    LifetimeManager &operator=(const LifetimeManager &) = delete;
    virtual ~LifetimeManager() = default;

    /// The number of an object that is alive from now on.
    uint32_t start_lifetime();
    /// An object needs no memory any more. Throws `resource::Misuse` unless it is alive.
    void end_lifetime(uint32_t object, Temporary need);
    bool are_all_finalized() const { return alive_count_ == 0; }

    /// Objects that are alive together apart. Throws `resource::Misuse` while one is alive.
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

/// A region for each of as few objects as are alive at once, as large as the largest it ever holds;
/// regions follow one another.
class BlobLifetimeManager final : public LifetimeManager {
    PoolLayout placed(const std::vector<Object> &objects) const override;
};

/// One region, objects at offsets that the planner chooses.
class OffsetLifetimeManager final : public LifetimeManager {
    PoolLayout placed(const std::vector<Object> &objects) const override;
};

} // namespace tightship::primitive
